// <queue-entry>: an entry of a queue, which expands to its facts. It can be updated in place, so that the focus and the expanded
// state stay. Texts of servers are always inserted as text.

/** @import { QueueEntry } from '../types.js' */
/** @import { Queue, Selection } from '../lib/queue.js' */
/** @import { Details } from './entry-details.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { toast } from '../lib/feedback.js';
import { clock, exact } from '../lib/format.js';
import { isPending, isRetryable } from '../lib/queue.js';
import { visible } from '../lib/visible.js';
import { EntryDetails } from './entry-details.js';
import { TimeAgo } from './time-ago.js';

/**
 * How the entries of a queue are shown.
 * @template {QueueEntry} E
 * @typedef {object} EntryKind
 * @property {Queue<any, E>} queue
 * @property {string} label The accessible name of a list of entries.
 * @property {(entry: E) => string} name Returns the recipients or the event.
 * @property {string} object The words before the name in the labels of the buttons.
 * @property {string} preposition The words between the name and the target in the summary.
 * @property {(entry: E) => boolean} hasMessage Returns whether the message may still exist.
 * @property {string} notCancelled The text if an entry was not cancelled.
 * @property {(entry: E) => [string, Node | string][]} facts Returns the facts that only entries of this queue have.
 * @property {(entry: E) => Node | null} more Returns what is shown after the facts.
 * @property {Details<E>} details
 */

/** @template {QueueEntry} E */
export class QueueEntryView extends HTMLElement {
  #entry;
  #kind;
  #summary = h('summary', {});
  #facts = h('div', { class: 'queue-facts' });
  #more;
  #details = h('details', {}, this.#summary, this.#facts);
  #retry = h('button', { class: 'button plain small', type: 'button', onclick: () => this.#run((selection) => this.#kind.queue.retry(selection), 'Nothing is left to be sent.') }, 'Retry');
  #cancel = h('button', { class: 'button plain small', type: 'button', onclick: () => this.#run((selection) => this.#kind.queue.cancel(selection), this.#kind.notCancelled) }, 'Cancel');
  #isBusy = false;

  /**
   * @param {E} entry
   * @param {EntryKind<E>} kind
   * @param {{ isListed?: boolean }} [options] Whether it is shown in a list of several messages, with a link to the message and the details.
   */
  constructor(entry, kind, { isListed = false } = {}) {
    super();
    this.#entry = entry;
    this.#kind = kind;
    this.#more = isListed ? new EntryDetails(entry, kind.details) : null;
    if (isListed && kind.hasMessage(entry)) this.#details.append(h('p', {}, h('a', { href: paths.mailbox(entry.mailbox, entry.message) }, 'Show the message')));
    if (this.#more) this.#details.append(this.#more);
    this.#draw();
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#details, h('div', { class: 'queue-actions' }, this.#retry, this.#cancel));
  }

  /** @param {E} entry */
  update(entry) {
    const isUnchanged = JSON.stringify(entry) === JSON.stringify(this.#entry);
    this.#entry = entry;
    if (isUnchanged) return;
    this.#draw();
    this.#more?.update(entry);
  }

  #draw() {
    const entry = this.#entry;
    const hadFocus = this.#retry === document.activeElement || this.#cancel === document.activeElement;
    const name = visible(this.#kind.name(entry));
    fill(this.#summary,
      h('span', { class: `badge queue-${entry.state}` }, entry.state),
      h('span', { class: 'queue-to' }, h('bdi', {}, name), h('span', { class: 'soft' }, this.#kind.preposition), h('bdi', {}, visible(entry.target))),
      h('span', { class: 'queue-reply soft' }, about(entry) !== '' && h('bdi', {}, visible(about(entry)))),
      h('span', { class: 'queue-time soft number' }, TimeAgo.create(Date.parse(entry.created), clock)));
    fill(this.#facts, h('dl', { class: 'session-facts' }, [...this.#kind.facts(entry), ...attempts(entry)].map(([term, value]) => h('div', {}, h('dt', {}, term), h('dd', {}, value)))), this.#kind.more(entry));
    this.#retry.hidden = !isRetryable(entry);
    this.#cancel.hidden = !isPending(entry);
    this.#retry.setAttribute('aria-label', `Retry ${this.#kind.object} ${name}`);
    this.#cancel.setAttribute('aria-label', `Cancel ${this.#kind.object} ${name}`);
    // The focused button can be hidden now.
    if (hadFocus && document.activeElement instanceof HTMLElement && document.activeElement.hidden) this.#summary.focus({ preventScroll: true });
  }

  /**
   * @param {(selection: Selection) => Promise<number>} change
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

/**
 * Returns the words after the target in the summary.
 * @param {QueueEntry} entry
 */
function about({ state, attempts, 'last-reply': reply, 'next-attempt': next }) {
  if (state === 'queued' && next !== null && attempts > 0) return `next attempt at ${clock(Date.parse(next))}: ${reply}`;
  return reply;
}

/**
 * Returns the facts that entries of all queues have.
 * @param {QueueEntry} entry
 */
function attempts({ attempts, created, expires, 'last-attempt': last, 'next-attempt': next, 'last-reply': reply, state }) {
  const time = (/** @type {string} */ text) => TimeAgo.create(Date.parse(text), exact);
  /** @type {[string, Node | string][]} */
  const known = [['Added', time(created)], ['Attempts', String(attempts)]];
  if (last !== null) known.push(['Last attempt', time(last)]);
  if (next !== null) known.push(['Next attempt', time(next)]);
  if (state === 'queued') known.push(['Expires', time(expires)]);
  if (reply !== '') known.push(['Last reply', h('bdi', { class: 'mono' }, visible(reply))]);
  return known;
}

customElements.define('queue-entry', QueueEntryView);
