// Moving between pages without loading a new document.

import { isPage } from './paths.js';

/** Tells of every move: an event `move`. */
export const moves = new EventTarget();

/**
 * Goes to a page.
 * @param {string} path
 * @param {{ replace?: boolean }} [how]
 */
export function go(path, { replace = false } = {}) {
  if (path === location.pathname && !location.search) return;
  if (replace) history.replaceState(null, '', path);
  else history.pushState(null, '', path);
  moves.dispatchEvent(new Event('move'));
}

window.addEventListener('popstate', () => moves.dispatchEvent(new Event('move')));

document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (!link?.href || link.target || link.hasAttribute('download')) return;
  const url = new URL(link.href);
  if (url.hash || !isPage(url)) return;
  event.preventDefault();
  go(url.pathname);
});
