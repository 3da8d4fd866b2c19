/* What needs no answer of the server: the theme, and the address of the page as it is. */
window.chipsim = {
  theme(clicks) {
    const root = document.documentElement;
    const next = root.dataset.theme === 'dark' ? 'light' : 'dark';
    root.dataset.theme = next;
    document.cookie = `theme=${next}; path=/; SameSite=Strict; max-age=31536000`;
    return next;
  },
};

/* The first link of a page is its state: the address bar follows it, so that a reload, a
   bookmark or a copied address shows the same. */
new MutationObserver(() => {
  const link = document.querySelector('main .card footer a[href]');
  const wanted = link && link.getAttribute('href');
  if (!wanted || !wanted.startsWith(location.pathname)) return;
  if (wanted !== location.pathname + location.search) history.replaceState(history.state, '', wanted);
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['href'] });
