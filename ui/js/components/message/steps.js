// What the mail decides how long it is: shown a part at a time.

import { h } from '../../lib/dom.js';
import { count } from '../../lib/format.js';

/**
 * @typedef {object} Steps
 * @property {number} first How many are drawn at first.
 * @property {number} [step] How many at each further step; as many as at first, when it is left out.
 * @property {(button: HTMLButtonElement) => Element} place Makes the last row, which asks for more.
 * @property {(rest: number) => string} [words]
 * @property {string} [kind] The class of the button.
 */

/**
 * Draws the first things of a list, and at the end a button that draws the next ones in its place.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Element} draw
 * @param {Steps} steps
 * @returns {Element[]}
 */
export function inSteps(items, draw, steps) {
  const { first, step = first, place, words = (rest) => `Show more (${count(rest)} left)`, kind = 'button small' } = steps;
  const drawn = items.slice(0, first).map(draw);
  const rest = items.slice(first);
  if (rest.length === 0) return drawn;
  const door = place(h('button', { class: kind, type: 'button', onclick: () => {
    const list = door.parentElement;
    door.replaceWith(...inSteps(rest, draw, { ...steps, first: step }));
    // The button that had the focus is gone; what it has shown is where reading goes on.
    list?.setAttribute('tabindex', '-1');
    list?.focus({ preventScroll: true });
  } }, words(rest.length)));
  return [...drawn, door];
}

/**
 * For the last row of a table.
 * @param {number} columns
 */
export const acrossTable = (columns) => (/** @type {HTMLButtonElement} */ button) => h('tr', {}, h('td', { colspan: columns }, button));

/**
 * Long text in blocks that are there as plain text from the start, so that they can be found, selected and printed. What
 * makes them pretty costs much more, and is done when a block comes near to what is seen; with the first one at once.
 * @param {HTMLElement} scroller
 * @param {Element[]} blocks
 * @param {(block: Element, at: number) => void} adorn
 */
export function adornNear(scroller, blocks, adorn) {
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      adorn(target, blocks.indexOf(target));
    }
  }, { root: scroller, rootMargin: '100% 0px' });
  blocks.forEach((block, at) => (at === 0 ? adorn(block, at) : observer.observe(block)));
}
