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
  return h('ul', { class: 'queue-targets', 'aria-label': 'Targets' }, targets.map((target) => card(target, describe(target))));
}

/**
 * @param {QueueTarget} target
 * @param {TargetText} text
 */
function card({ name, state, 'last-error': error, entries }, { address, state: words, lines, action }) {
  return h('li', { class: 'queue-target sheet' },
    h('p', { class: 'queue-target-name' },
      h('strong', {}, h('bdi', {}, visible(name))),
      h('bdi', { class: 'soft' }, visible(address)),
      h('span', { class: `badge queue-${state}` }, words),
      action),
    lines.map((line) => h('p', { class: 'soft' }, h('bdi', {}, visible(line)))),
    error !== null && h('p', { class: 'queue-error' }, h('bdi', {}, visible(error))),
    h('p', { class: 'number' }, paths.ENTRY_STATES.map((each) => `${count(entries[each] ?? 0)} ${each}`).join(', ')));
}
