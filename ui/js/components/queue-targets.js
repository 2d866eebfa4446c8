// The targets of a queue with their states, and the number of their entries.

/** @import { QueueTarget } from '../types.js' */

import * as paths from '../lib/paths.js';
import { h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { visible } from '../lib/visible.js';

/**
 * What is shown of a target.
 * @typedef {object} TargetText
 * @property {string} address The address, after the name.
 * @property {string} state The words for its state.
 * @property {string[]} lines
 * @property {HTMLButtonElement} [action] A button that changes it.
 */

/**
 * @template {QueueTarget} T
 * @param {T[]} targets
 * @param {(target: T) => TargetText} describe
 */
export function queueTargets(targets, describe) {
  return h('ul', { class: 'queue-targets sheet', 'aria-label': 'Targets' }, targets.map((target) => row(target, describe(target))));
}

/**
 * @param {QueueTarget} target
 * @param {TargetText} text
 */
function row({ name, state, 'last-error': error, entries }, { address, state: words, lines, action }) {
  const counts = paths.ENTRY_STATES.filter((each) => entries[each] > 0).map((each) => `${count(entries[each])} ${each}`);
  return h('li', { class: 'queue-target' },
    h('p', { class: 'queue-target-name' },
      h('strong', {}, h('bdi', {}, visible(name))),
      h('bdi', { class: 'soft' }, visible(address)),
      h('span', { class: `badge queue-${state}` }, words),
      action),
    lines.map((line) => h('p', { class: 'soft' }, h('bdi', {}, visible(line)))),
    error !== null && h('p', { class: 'queue-error' }, h('bdi', {}, visible(error))),
    h('p', { class: 'soft number' }, counts.join(', ') || 'No entries'));
}
