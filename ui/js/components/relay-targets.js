// The targets of the relay with their states, and the number of their entries.

/** @import { RelayTarget } from '../types.js' */

import * as paths from '../lib/paths.js';
import { h } from '../lib/dom.js';
import { clock, count } from '../lib/format.js';
import { visible } from '../lib/visible.js';

/** @param {RelayTarget[]} targets */
export function relayTargets(targets) {
  return h('ul', { class: 'relay-targets', 'aria-label': 'Targets' }, targets.map(target));
}

/** @param {RelayTarget} target */
function target({ name, host, port, allowed, blocked, state, 'paused-until': until, 'last-error': error, entries }) {
  const patterns = (/** @type {string} */ label, /** @type {string[]} */ all) => all.length > 0 && h('p', { class: 'soft' }, `${label}: `, h('bdi', {}, visible(all.join(', '))));
  return h('li', { class: 'relay-target sheet' },
    h('p', { class: 'relay-target-name' },
      h('strong', {}, h('bdi', {}, visible(name))),
      h('bdi', { class: 'soft' }, visible(`${host}:${port}`)),
      h('span', { class: `badge relay-${state}` }, state === 'paused' && until !== null ? `paused until ${clock(Date.parse(until))}` : state)),
    patterns('Allowed', allowed),
    patterns('Blocked', blocked),
    error !== null && h('p', { class: 'relay-error' }, h('bdi', {}, visible(error))),
    h('p', { class: 'number' }, paths.RELAY_STATES.map((each) => `${count(entries[each] ?? 0)} ${each}`).join(', ')));
}
