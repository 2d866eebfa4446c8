// The head of a page, which has the same height and style on all pages: the title, and what can be done.

/** @import { Child } from '../lib/dom.js' */

import { h } from '../lib/dom.js';

/**
 * @param {string} title
 * @param {...Child} tools
 */
export function pageHead(title, ...tools) {
  return h('div', { class: 'page-head' }, h('h1', { tabindex: -1 }, title), ...tools);
}

/** Creates the words that tell whether a page updates itself, and the function that changes them. */
export function liveState() {
  const element = h('span', { class: 'live-state', role: 'status', hidden: true });
  const show = (/** @type {boolean} */ isLost) => {
    element.hidden = false;
    element.dataset.state = isLost ? 'lost' : 'live';
    const words = isLost ? 'Connection lost' : 'Live';
    if (element.textContent !== words) element.textContent = words;
  };
  return { element, show };
}
