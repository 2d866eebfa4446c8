// Moving between pages without loading a new document.

import { isPage } from './paths.js';

/** Tells of every move: an event `move`. */
export const moves = new EventTarget();

/**
 * Goes to a page. What is remembered with an entry of the history stays when another page takes its place.
 * @param {string} path
 * @param {{ replace?: boolean, state?: object | null }} [how]
 */
export function go(path, { replace = false, state = replace ? history.state : null } = {}) {
  if (path === location.pathname + location.search) return;
  if (replace) history.replaceState(state, '', path);
  else history.pushState(state, '', path);
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
  go(url.pathname + url.search);
});
