/* What needs no answer of the server: the theme, the address of the page as it is, and the
   order in which a page that is dragged asks and draws. */
(() => {
  const gates = {};   // by page: what was asked last, and what waits
  const LOST = 30000;  // milliseconds after which a question is asked again

  const gate = page => gates[page] ??= { since: 0, waiting: null, echo: {}, timer: 0 };

  const chipsim = {
    theme(clicks) {
      if (!clicks) return window.dash_clientside.no_update;  // the page has only been opened
      const root = document.documentElement;
      const next = root.dataset.theme === 'dark' ? 'light' : 'dark';
      root.dataset.theme = next;
      document.cookie = `theme=${next}; path=/; SameSite=Strict; max-age=31536000`;
      return next;
    },

    /* One question at a time: while an answer is awaited only the newest question is kept.
       What moved is told by the values: of two moves that meet, dash names only one. */
    ask(page, names, values) {
      const { no_update, callback_context } = window.dash_clientside;
      const own = gate(page), told = Object.fromEntries(names.map((n, i) => [n, values[i]]));
      const known = { ...own.asked, ...own.echo }, opened = !callback_context.triggered.length;
      const moved = names.filter(n => JSON.stringify(told[n]) !== JSON.stringify(known[n]));
      if (!moved.length && !opened) return no_update;
      own.asked = told;
      own.waiting = { moved: opened ? '' : moved[0], values: told };
      if (!own.since || opened) next(page, own);
      return no_update;
    },

    /* The first card at once, then the others, each with the newest answer there is. */
    draw(page, answer) {
      const { no_update } = window.dash_clientside;
      if (!answer) return no_update;
      const own = gate(page);
      own.echo = answer.echo ?? {};
      next(page, own);
      own.newest = { number: (own.newest?.number ?? 0) + 1, cards: answer.cards };
      if (!own.drawing) work(own);
      return no_update;
    },
  };

  /* Set, not returned: dash drops what a callback returns when its inputs have moved again. */
  function next(page, own) {
    clearTimeout(own.timer);
    own.since = 0;
    if (!own.waiting || !document.getElementById(`${page}-tiles`)) return;
    own.since = performance.now();
    const question = own.waiting;
    own.waiting = null;
    window.dash_clientside.set_props(`${page}-ask`, { data: question });
    own.timer = setTimeout(() => { own.waiting ??= question; next(page, own); }, LOST);
  }

  async function work(own) {
    own.drawing = true;
    const drawn = {};
    try {
      for (;;) {
        const names = Object.keys(own.newest.cards);
        const stale = names.filter(name => drawn[name] !== own.newest.number);
        if (!stale.length) break;
        const name = stale.includes(names[0]) ? names[0]
          : stale.reduce((a, b) => ((drawn[b] ?? 0) < (drawn[a] ?? 0) ? b : a));
        drawn[name] = own.newest.number;
        if (!(await card(name, own.newest.cards[name]))) break;
        await new Promise(requestAnimationFrame);
      }
    } finally {
      own.drawing = false;
    }
  }

  async function card(name, [title, lead, figure, command, link]) {
    const part = what => document.getElementById(`${name}-${what}`);
    let place = null;
    while (!(place = part('graph')?.querySelector('.js-plotly-plot')) || !window.Plotly) {
      if (!part('graph')) return false;  // the reader has gone to another page
      await new Promise(done => setTimeout(done, 30));  // the plotting library still loads
    }
    part('title').textContent = title;
    part('lead').textContent = lead;
    part('command').textContent = command;
    part('link').setAttribute('href', link);
    await window.Plotly.react(place, figure.data, figure.layout);
    return true;
  }

  window.chipsim = chipsim;

  /* The first link of a page is its state: the address bar follows it, so that a reload, a
     bookmark or a copied address shows the same. */
  new MutationObserver(() => {
    const aside = document.querySelector('main aside:not([data-seen])');
    if (aside) {
      aside.dataset.seen = '';
      if (innerWidth < 820)  // pictures first where there is no room beside the controls
        aside.querySelectorAll(':scope > details').forEach(part => { part.open = false; });
    }
    const link = document.querySelector('main .card footer a[href]');
    const wanted = link && link.getAttribute('href');
    if (!wanted || wanted.split('?')[0] !== location.pathname) return;
    clearTimeout(window.chipsim.later);  // browsers allow some hundred changes in half a minute
    window.chipsim.later = setTimeout(() => {
      if (wanted !== location.pathname + location.search)
        history.replaceState(history.state, '', wanted);
    }, 200);
  }).observe(document, {
    subtree: true, childList: true, attributes: true, attributeFilter: ['href'],
  });
})();
