// Shows long content of a message in steps.

import { h } from '../../lib/dom.js';
import { count } from '../../lib/format.js';

/**
 * @typedef {object} Steps
 * @property {number} first The number of items that are drawn at first.
 * @property {number} [step] The number of items of each further step; by default `first`.
 * @property {(button: HTMLButtonElement) => Element} wrap Creates the last row, which contains the button.
 * @property {(rest: number) => string} [label]
 * @property {string} [kind] The class of the button.
 */

/**
 * Draws the first items of a list, followed by a button that draws the next ones.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Element} draw
 * @param {Steps} steps
 * @returns {Element[]}
 */
export function withShowMore(items, draw, steps) {
  const { first, step = first, wrap, label = (rest) => `Show more (${count(rest)} left)`, kind = 'button small' } = steps;
  const drawn = items.slice(0, first).map(draw);
  const rest = items.slice(first);
  if (rest.length === 0) return drawn;
  const last = wrap(h('button', { class: kind, type: 'button', onclick: () => {
    const list = last.parentElement;
    last.replaceWith(...withShowMore(rest, draw, { ...steps, first: step }));
    // The focused button was removed; the list gets the focus.
    list?.setAttribute('tabindex', '-1');
    list?.focus({ preventScroll: true });
  } }, label(rest.length)));
  return [...drawn, last];
}

/**
 * Creates the last row of a table.
 * @param {number} columns
 */
export const tableRow = (columns) => (/** @type {HTMLButtonElement} */ button) => h('tr', {}, h('td', { colspan: columns }, button));

/**
 * Decorates blocks of a long text when they are scrolled into view; the first one at once. All blocks are in the document as
 * plain text from the start, so they can be found, selected and printed; decorating all of them would be slow.
 * @param {Element} panel A panel of the message view, which scrolls.
 * @param {Element[]} blocks
 * @param {(block: Element, at: number) => void} decorate
 */
export function decorateWhenNear(panel, blocks, decorate) {
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      decorate(target, blocks.indexOf(target));
    }
  }, { root: panel.closest('message-view'), rootMargin: '100% 0px' });
  blocks.forEach((block, at) => (at === 0 ? decorate(block, at) : observer.observe(block)));
}
