// Keeps a served page up to date: asks for it again and puts in what has changed. What the reader opened, chose, hid or
// scrolled stays as it is.
(() => {
  'use strict';
  const notice = document.getElementById('connection');
  const parse = text => new DOMParser().parseFromString(text, 'text/html');

  // ---- what the reader did to a part, done again to its successor
  const focusable = part => [...part.querySelectorAll('a, button, input, summary, pre, svg.chart, .key')];
  const keep_state = (before, after) => {
    const all = (part, selector) => [...part.querySelectorAll(selector), ...(part.matches(selector) ? [part] : [])];
    const pair = (selector, copy) => {
      const found = all(after, selector);
      all(before, selector).forEach((element, i) => { if (found[i]) copy(element, found[i]); });
    };
    pair('details', (a, b) => { b.open = a.open; });
    pair('.scroll', (a, b) => { b.scrollLeft = a.scrollLeft; });
    for (const chosen of before.querySelectorAll('input:checked')) {
      const same = after.querySelector(`input[name="${CSS.escape(chosen.name)}"][value="${CSS.escape(chosen.value)}"]`);
      if (same) same.checked = true;
    }
    all(after, 'figure').forEach(figure => figure.dispatchEvent(new Event('newfigure', { bubbles: true })));
    for (const figure of all(before, 'figure')) {
      const off = new Set([...figure.querySelectorAll('.key.off')].map(key => key.dataset.series));
      for (const number of off) {
        const key = all(after, 'figure').find(each => each.id === figure.id)?.querySelector(`.key[data-series="${number}"]`);
        key?.dispatchEvent(new MouseEvent('click'));
      }
    }
  };

  // ---- putting in: only the smallest parts that differ from what the server sent last
  const containers = new Set(['HEADER', 'MAIN', 'SECTION', 'FOOTER']);
  const same_shape = (a, b) => a.children.length === b.children.length &&
    [...a.children].every((child, i) => child.tagName === b.children[i].tagName && child.id === b.children[i].id);
  const is_read = part => part.matches(':hover') && part.querySelector('.cursor-layer');  // its tip follows the pointer
  let put_off = false;
  const update = (shown, last, fresh) => {
    if (last.isEqualNode(fresh)) return;
    if (containers.has(fresh.tagName) && same_shape(last, fresh)) {
      [...fresh.children].forEach((child, i) => update(shown.children[i], last.children[i], child));
    } else if (is_read(shown)) {
      put_off = true;
    } else {
      const part = document.importNode(fresh, true), focus = focusable(shown).indexOf(document.activeElement);
      shown.replaceWith(part);
      keep_state(shown, part);
      if (focus >= 0) focusable(part)[focus]?.focus({ preventScroll: true });
    }
  };

  // ---- asking
  // As the server sent it: this script runs before the one that changes the figures.
  let last = parse(document.documentElement.outerHTML), tag = null, timer = 0;
  const say = text => {
    notice.textContent = text;
    notice.hidden = text === '';
  };
  const put_in = text => {
    const fresh = parse(text);
    put_off = false;
    for (const name of ['header', 'nav', 'main', 'footer']) {
      const parts = [document, last, fresh].map(page => page.querySelector(`body > ${name}`));
      if (parts.every(part => part)) update(...parts);
      else if (parts.some(part => part)) return location.reload();  // the contents have come or gone
    }
    document.title = fresh.title;
    if (!put_off) last = fresh;
    show_ages();
  };
  const look = async () => {
    let wait = 5;
    try {
      const answer = await fetch(location.pathname, { headers: tag ? { 'If-None-Match': tag } : {}, cache: 'no-store' });
      wait = Number(answer.headers.get('Next-Look')) || wait;
      if (answer.ok) {
        put_in(await answer.text());
        tag = put_off ? null : answer.headers.get('ETag');
      }
      say(answer.ok || answer.status === 304 ? '' : 'This is no longer there; the page shows what it was.');
    } catch {
      say('The server does not answer. This page shows what it sent last, and continues when the server is back.');
    }
    clearTimeout(timer);
    timer = setTimeout(next, wait * 1000);
  };
  const next = () => { if (!document.hidden) look(); };
  document.addEventListener('visibilitychange', () => { clearTimeout(timer); next(); });

  // ---- "12 s ago"
  const age = seconds => seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` :
    seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
  const show_ages = () => document.querySelectorAll('time').forEach(time => {
    time.title = time.dateTime;
    time.textContent = age(Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000)) + ' ago';
  });
  show_ages();
  setInterval(show_ages, 1000);
  look();
})();
