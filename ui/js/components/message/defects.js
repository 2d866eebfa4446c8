// What is wrong with a mail's form, as the server found it.

/** @import { Defect } from '../../types.js' */

import { h } from '../../lib/dom.js';
import { plural } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';

const MOST = 200;

/**
 * A line that says how much is wrong, and what when it is opened. Nothing for a mail that is well.
 * @param {Defect[]} defects
 */
export function defects(defects) {
  if (defects.length === 0) return null;
  const severe = defects.some((defect) => defect.severe);
  const summary = h('summary', {}, icon('warning'), h('span', {}, `${plural(defects.length, 'problem')} in this mail`));
  return h('details', { class: severe ? 'message-defects note bad' : 'message-defects note warn' }, summary, defectList(defects));
}

/**
 * @param {Defect[]} defects
 */
export function defectList(defects) {
  const rows = defects.slice(0, MOST).map(({ name, detail, severe }) => h('li', { class: severe ? 'severe' : null }, h('strong', {}, visible(name)), severe && h('span', { class: 'badge' }, 'severe'), h('span', {}, visible(detail))));
  const rest = defects.length - rows.length;
  return h('ul', { class: 'defect-list' }, rows, rest > 0 && h('li', {}, `and ${plural(rest, 'more', 'more')}`));
}
