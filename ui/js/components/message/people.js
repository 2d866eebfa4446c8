// The sender and the recipients of a message.

import { h } from '../../lib/dom.js';
import { address, count } from '../../lib/format.js';
import { visible } from '../../lib/visible.js';
import { clamped } from './clamp.js';
import { withShowMore } from './show-more.js';

/** Longer texts can be cut off, in characters. */
const MAX_LENGTH = 100;

const FIRST_PEOPLE = 3;
const MORE_PEOPLE = 500;

/**
 * Formats a name and an address. Each is isolated, so that text direction controls in one do not affect the other.
 * @param {string} text
 * @param {string} placeholder
 */
export function person(text, placeholder) {
  const known = address(text);
  const [name, at] = [visible(known.name).trim(), visible(known.address).trim()];
  if (!name) return h('em', { class: 'soft' }, placeholder);
  const whole = h('span', { class: 'person' }, h('bdi', { class: 'person-name' }, name), name !== at && h('span', { class: 'person-address' }, ' <', h('bdi', {}, at), '>'));
  return text.length > MAX_LENGTH ? clamped(whole, 'address') : whole;
}

/**
 * Returns a row with people, or null if there are none.
 * @param {string} label
 * @param {string} kind A class.
 * @param {string[]} all
 */
export function people(label, kind, all) {
  if (all.length === 0) return null;
  const list = h('ul', { class: `people ${kind}`, 'aria-label': label });
  const draw = (/** @type {string} */ one) => h('li', {}, person(one, '(no recipient)'));
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  const more = (/** @type {number} */ rest) => `and ${count(rest)} more`;
  list.append(...withShowMore(all, draw, { first: FIRST_PEOPLE, step: MORE_PEOPLE, wrap, label: more, kind: 'more' }));
  return h('div', { class: 'people-row' }, h('span', { class: 'people-label', 'aria-hidden': 'true' }, label), list);
}

/** @param {string} from */
export const initial = (from) => /[\p{L}\p{N}]/u.exec(address(from).name)?.[0].toUpperCase() ?? '?';
