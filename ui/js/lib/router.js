// Navigation between pages without loading a new document.

import { isPage } from './paths.js';

/** Dispatches `leave` before a page adds a history entry, and `move` after every navigation; its detail is the kind of the navigation: `push`, `replace` or `pop`. */
export const moves = new EventTarget();

/**
 * Navigates to a page. With `replace`, the state of the history entry is kept.
 * @param {string} path
 * @param {{ replace?: boolean, state?: object | null }} [options]
 */
export function go(path, { replace = false, state = replace ? history.state : null } = {}) {
  if (path === location.pathname + location.search) return;
  if (replace) {
    history.replaceState(state, '', path);
  } else {
    moves.dispatchEvent(new Event('leave'));
    history.pushState(state, '', path);
  }
  moves.dispatchEvent(new CustomEvent('move', { detail: replace ? 'replace' : 'push' }));
}

window.addEventListener('popstate', () => moves.dispatchEvent(new CustomEvent('move', { detail: 'pop' })));

document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (!link?.href || link.target || link.hasAttribute('download')) return;
  const url = new URL(link.href);
  if (url.hash || !isPage(url)) return;
  event.preventDefault();
  go(url.pathname + url.search);
});
