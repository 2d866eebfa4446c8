// <relay-entry>: an entry in the queue of the relay, which expands to its recipients with the replies of the server. It can be
// updated in place, so that the focus and the expanded state stay. Texts of servers are always inserted as text.

/** @import { RelayEntry } from '../types.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import * as relay from '../lib/relay.js';
import { fill, h } from '../lib/dom.js';
import { toast } from '../lib/feedback.js';
import { clock, exact, plural } from '../lib/format.js';
import { visible } from '../lib/visible.js';
import { withShowMore } from './message/show-more.js';
import { OutgoingTranscript } from './outgoing-transcript.js';
import { TimeAgo } from './time-ago.js';

const FIRST_RECIPIENTS = 20;

export class RelayEntryView extends HTMLElement {
  #entry;
  #summary = h('summary', {});
  #facts = h('div', { class: 'relay-facts' });
  #transcript;
  #details = h('details', {}, this.#summary, this.#facts);
  #retry = h('button', { class: 'button small', type: 'button', onclick: () => this.#run(relay.retry, 'Nothing is left to be sent.') }, 'Retry');
  #cancel = h('button', { class: 'button small', type: 'button', onclick: () => this.#run(relay.cancel, 'The message is no longer queued.') }, 'Cancel');
  #isBusy = false;

  /**
   * @param {RelayEntry} entry
   * @param {{ isListed?: boolean }} [options] Whether it is shown in a list of several messages, with a link to the message and the transcript.
   */
  constructor(entry, { isListed = false } = {}) {
    super();
    this.#entry = entry;
    this.#transcript = isListed ? new OutgoingTranscript(entry) : null;
    if (this.#transcript) this.#details.append(h('p', {}, h('a', { href: paths.mailbox(entry.mailbox, entry.message) }, 'Show the message')), this.#transcript);
    this.#draw();
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#details, h('div', { class: 'relay-actions' }, this.#retry, this.#cancel));
  }

  /** @param {RelayEntry} entry */
  update(entry) {
    const isUnchanged = JSON.stringify(entry) === JSON.stringify(this.#entry);
    this.#entry = entry;
    if (isUnchanged) return;
    this.#draw();
    this.#transcript?.update(entry);
  }

  #draw() {
    const entry = this.#entry;
    const hadFocus = this.#retry === document.activeElement || this.#cancel === document.activeElement;
    const names = recipientNames(entry);
    fill(this.#summary,
      h('span', { class: `badge relay-${entry.state}` }, entry.state),
      h('span', { class: 'relay-to' }, h('bdi', {}, visible(names)), h('span', { class: 'soft' }, ' through '), h('bdi', {}, visible(entry.target))),
      h('span', { class: 'relay-reply soft' }, about(entry) !== '' && h('bdi', {}, visible(about(entry)))),
      h('span', { class: 'relay-time soft number' }, TimeAgo.create(Date.parse(entry.created), clock)));
    fill(this.#facts, facts(entry), recipients(entry));
    this.#retry.hidden = !relay.isRetryable(entry);
    this.#cancel.hidden = !relay.isPending(entry);
    this.#retry.setAttribute('aria-label', `Retry sending to ${visible(names)}`);
    this.#cancel.setAttribute('aria-label', `Cancel sending to ${visible(names)}`);
    // The focused button can be hidden now.
    if (hadFocus && document.activeElement instanceof HTMLElement && document.activeElement.hidden) this.#summary.focus({ preventScroll: true });
  }

  /**
   * @param {(selection: relay.Selection) => Promise<number>} change
   * @param {string} nothing The text if the entry was not changed.
   */
  async #run(change, nothing) {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      if (await change({ ids: [this.#entry.id] }) === 0) toast(nothing);
    } catch (error) {
      toast(api.sentence(error), { bad: true });
    } finally {
      this.#isBusy = false;
    }
  }
}

/** @param {RelayEntry} entry */
function recipientNames({ recipients: [first, ...others] }) {
  if (!first) return 'no recipient';
  return others.length === 0 ? first.address : `${first.address} and ${plural(others.length, 'other')}`;
}

/**
 * Returns the words after the recipients in the summary.
 * @param {RelayEntry} entry
 */
function about({ state, attempts, 'last-reply': reply, 'next-attempt': next }) {
  if (state === 'queued' && next !== null && attempts > 0) return `next attempt at ${clock(Date.parse(next))}: ${reply}`;
  return reply;
}

/** @param {RelayEntry} entry */
function facts({ sender, origin, by, attempts, created, expires, 'last-attempt': last, 'next-attempt': next, 'last-reply': reply, state }) {
  const time = (/** @type {string} */ text) => TimeAgo.create(Date.parse(text), exact);
  const reason = origin === 'forward' ? 'forwarded by a rule' : 'released';
  /** @type {[string, Node | string][]} */
  const known = [
    ['Sender', h('bdi', {}, visible(sender) || '<>')],
    ['Reason', by === null ? reason : h('bdi', {}, visible(`${reason} by ${by}`))],
    ['Added', time(created)],
    ['Attempts', String(attempts)],
  ];
  if (last !== null) known.push(['Last attempt', time(last)]);
  if (next !== null) known.push(['Next attempt', time(next)]);
  if (state === 'queued') known.push(['Expires', time(expires)]);
  if (reply !== '') known.push(['Last reply', h('bdi', { class: 'mono' }, visible(reply))]);
  return h('dl', { class: 'session-facts' }, known.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

/** @param {RelayEntry} entry */
function recipients({ recipients: all }) {
  const row = (/** @type {RelayEntry['recipients'][number]} */ { address, state, reply }) => h('li', {},
    h('span', { class: `badge relay-${state}` }, state), h('bdi', {}, visible(address)), reply !== '' && h('bdi', { class: 'mono soft' }, visible(reply)));
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  return h('ul', { class: 'relay-recipients', 'aria-label': 'Recipients' }, withShowMore(all, row, { first: FIRST_RECIPIENTS, wrap }));
}

customElements.define('relay-entry', RelayEntryView);
