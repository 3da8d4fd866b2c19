"""Pictures that move: a Dash app over the model, for one person or several at once.

URL query -> state of a page -> model -> sketches -> browser; nothing of a reader is kept here
"""
