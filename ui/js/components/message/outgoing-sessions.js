// <outgoing-sessions>: the sessions in which a message was sent to other servers, below the one that delivered it here. Hidden if
// there are none. <message-relay> notifies it of changes.

/** @import { RelayEntry, ShownMessage } from '../../types.js' */

import * as relay from '../../lib/relay.js';
import { fill, h } from '../../lib/dom.js';
import { clock } from '../../lib/format.js';
import { visible } from '../../lib/visible.js';
import { EntryDetails } from '../entry-details.js';
import { RELAY_ENTRY } from '../relay-entry.js';

export class OutgoingSessions extends HTMLElement {
  #message;
  #disconnected = new AbortController();
  /** @type {Map<string, EntryDetails<RelayEntry>>} */
  #shown = new Map();

  /** @param {ShownMessage} message */
  constructor({ id, whole }) {
    super();
    this.#message = whole?.id ?? id;
    this.hidden = true;
  }

  connectedCallback() {
    this.#disconnected = new AbortController();
    const { signal } = this.#disconnected;
    relay.queue.changes.addEventListener('entries', (event) => {
      const { message, entries } = /** @type {CustomEvent<{ message: string, entries: RelayEntry[] }>} */ (event).detail;
      if (message === this.#message) this.#draw(entries);
    }, { signal });
    // If it fails, the panel of the incoming session shows that the server does not respond.
    relay.entriesOf(this.#message, signal).then((page) => page && !signal.aborted && this.#draw(page.entries), () => {});
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  /** @param {RelayEntry[]} entries */
  #draw(entries) {
    const attempted = entries.filter(({ attempts }) => attempts > 0);
    for (const entry of attempted) this.#shown.get(entry.id)?.update(entry);
    if (attempted.length === this.#shown.size && attempted.every(({ id }) => this.#shown.has(id))) return;
    this.#shown = new Map(attempted.map((entry) => [entry.id, this.#shown.get(entry.id) ?? new EntryDetails(entry, { ...RELAY_ENTRY.details, label })]));
    this.hidden = attempted.length === 0;
    fill(this, h('section', { class: 'outgoing-sessions', 'aria-label': 'Outgoing sessions' }, h('p', { class: 'outgoing-title' }, 'Outgoing sessions'), ...this.#shown.values()));
  }
}

/** @param {RelayEntry} entry */
function label({ state, target, 'last-attempt': last }) {
  return [h('span', { class: `badge queue-${state}` }, state), h('bdi', {}, visible(target)), h('span', { class: 'soft number' }, last === null ? '' : clock(Date.parse(last)))];
}

customElements.define('outgoing-sessions', OutgoingSessions);
