// The page `/relay`: the targets of the relay, and the entries of its queue.

/** @import { RelayEntry, RelayTarget } from '../types.js' */

import { h } from '../lib/dom.js';
import { clock } from '../lib/format.js';
import { QueuePage } from '../components/queue-page.js';
import { RELAY_ENTRY } from '../components/relay-entry.js';

const patterns = (/** @type {string} */ label, /** @type {string[]} */ all) => (all.length > 0 ? [`${label}: ${all.join(', ')}`] : []);

/** @extends {QueuePage<RelayTarget, RelayEntry>} */
export class RelayPage extends QueuePage {
  constructor() {
    super({
      page: 'relay',
      title: 'Relay',
      about: 'Messages that this server sends to other mail servers: released on the page of a message, or forwarded by a rule.',
      entry: RELAY_ENTRY,
      target: ({ host, port, allowed, blocked, state, 'paused-until': until }) => ({
        address: `${host}:${port}`,
        state: state === 'paused' && until !== null ? `paused until ${clock(Date.parse(until))}` : state,
        lines: [...patterns('Allowed', allowed), ...patterns('Blocked', blocked)],
      }),
      noun: ['message', 'messages'],
      retryText: 'All queued, failed and cancelled messages are sent now, to the recipients that have not accepted them yet.',
      hiddenText: 'This server does not show the messages of all mailboxes. Open a message to see where it was sent.',
      notConfigured: ['The relay is not configured', h('span', {}, 'This server sends no message to other mail servers. To release messages to real mailboxes, configure a target with the setting ', h('code', {}, 'relay.targets'), '.')],
      nothingText: 'Open a message and press Release… to send it to a real mailbox.',
    });
  }
}

customElements.define('relay-page', RelayPage);
