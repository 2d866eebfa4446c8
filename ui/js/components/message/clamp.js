// Long texts in the headline of a message are cut off after some lines.

import { h } from '../../lib/dom.js';

/**
 * Cuts off an element after two lines, with a button that shows the rest. The button is shown only if something is cut off.
 * @param {HTMLElement} whole
 * @param {string} name
 */
export function clamped(whole, name) {
  whole.classList.add('clamped');
  const isClamped = () => whole.classList.contains('clamped');
  const label = () => (isClamped() ? `Show the whole ${name}` : 'Show less');
  const button = h('button', { class: 'more', type: 'button', hidden: true, 'aria-expanded': 'false', onclick: () => {
    button.setAttribute('aria-expanded', String(!whole.classList.toggle('clamped')));
    button.textContent = label();
  } }, label());
  // An expanded text keeps its button.
  new ResizeObserver(() => isClamped() && (button.hidden = whole.scrollHeight <= whole.clientHeight + 1)).observe(whole);
  return h('div', { class: 'message-long' }, whole, button);
}
