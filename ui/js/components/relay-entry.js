// How entries of the relay queue are shown: the recipients with the replies of the server, and the transcript of the last attempt.

/** @import { RelayEntry } from '../types.js' */
/** @import { EntryKind } from './queue-entry.js' */

import * as relay from '../lib/relay.js';
import { h } from '../lib/dom.js';
import { plural } from '../lib/format.js';
import { visible } from '../lib/visible.js';
import { withShowMore } from './message/show-more.js';
import { transcriptLines } from './transcript.js';

const FIRST_RECIPIENTS = 20;

/** @type {EntryKind<RelayEntry>} */
export const RELAY_ENTRY = {
  queue: relay.queue,
  label: 'Relayed messages, newest first',
  name: ({ recipients: [first, ...others] }) => {
    if (!first) return 'no recipient';
    return others.length === 0 ? first.address : `${first.address} and ${plural(others.length, 'other')}`;
  },
  object: 'sending to',
  preposition: ' via ',
  hasMessage: () => true,
  notCancelled: 'The message is no longer queued.',
  facts: ({ sender, origin, by }) => {
    const reason = origin === 'forward' ? 'forwarded by a rule' : 'released';
    return [
      ['Sender', h('bdi', {}, visible(sender) || '<>')],
      ['Reason', by === null ? reason : h('bdi', {}, visible(`${reason} by ${by}`))],
    ];
  },
  more: ({ recipients: all }) => {
    const row = (/** @type {RelayEntry['recipients'][number]} */ { address, state, reply }) => h('li', {},
      h('span', { class: `badge queue-${state}` }, state), h('bdi', {}, visible(address)), reply !== '' && h('bdi', { class: 'mono soft' }, visible(reply)));
    const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
    return h('ul', { class: 'relay-recipients', 'aria-label': 'Recipients' }, withShowMore(all, row, { first: FIRST_RECIPIENTS, wrap }));
  },
  details: {
    label: () => ['Transcript of the last attempt'],
    load: async (id, signal) => {
      const { transcript = [] } = await relay.queue.entry(id, signal);
      return transcript.length > 0 ? transcriptLines(transcript) : h('p', { class: 'soft' }, 'There was no connection.');
    },
    isAvailable: ({ attempts }) => attempts > 0,
  },
};
