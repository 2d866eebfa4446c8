// The format errors that the server found in a message.

/** @import { Defect } from '../../types.js' */

import { h } from '../../lib/dom.js';
import { plural } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';

const MAX_SHOWN = 200;

/** That a message has no plain text is not a problem. */
const TEXT_FROM_HTML = 'Plain Text from HTML';

/**
 * Returns the defects that are problems.
 * @param {Defect[]} defects
 */
export const problems = (defects) => defects.filter(({ name }) => name !== TEXT_FROM_HTML);

/**
 * Returns a collapsed list of the problems, or null if there are none.
 * @param {Defect[]} all
 */
export function defects(all) {
  const found = problems(all);
  if (found.length === 0) return null;
  const severe = found.some((defect) => defect.severe);
  const summary = h('summary', {}, icon('warning'), h('span', {}, `${plural(found.length, 'problem')} in this message`));
  return h('details', { class: severe ? 'message-defects note bad' : 'message-defects note warn' }, summary, defectList(found));
}

/**
 * @param {Defect[]} defects
 */
export function defectList(defects) {
  const rows = defects.slice(0, MAX_SHOWN).map(({ name, detail, severe }) => h('li', { class: severe ? 'severe' : null }, h('strong', {}, visible(name)), severe && h('span', { class: 'badge' }, 'severe'), h('span', {}, visible(detail))));
  const rest = defects.length - rows.length;
  return h('ul', { class: 'defect-list' }, rows, rest > 0 && h('li', {}, `and ${plural(rest, 'more', 'more')}`));
}
