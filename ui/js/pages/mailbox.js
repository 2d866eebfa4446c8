// The page of a mailbox: the list of its messages beside the one that is read. Here is what happens when something is
// chosen: which message is shown, where the address goes, what is marked, deleted and brought back.

/** @import { Entry } from '../lib/entries.js' */
/** @import { Route } from '../types.js' */

import * as api from '../lib/api.js';
import * as keys from '../lib/keys.js';
import * as notices from '../lib/notices.js';
import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import { fill, h, set } from '../lib/dom.js';
import { Deletions, MOST_UNDOABLE } from '../lib/deletions.js';
import { Messages } from '../lib/messages.js';
import { go, moves } from '../lib/router.js';
import { Running } from '../lib/running.js';
import { toast } from '../lib/talk.js';
import { title } from '../lib/title.js';
import { EmptyMailbox } from '../components/empty-mailbox.js';
import { ListNotes } from '../components/list-notes.js';
import { MailboxHead } from '../components/mailbox-head.js';
import { mailboxKeys } from '../components/mailbox-keys.js';
import { MessageList } from '../components/message-list.js';
import { MessagePane } from '../components/message-pane.js';
import { PaneDivider } from '../components/pane-divider.js';

const NARROW = matchMedia('(max-width: 46rem)');

export class MailboxPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #messages = new Messages('');
  #deletions = new Deletions(this.#messages);
  /** Whether this browser remembers that the mailbox was opened. */
  #isRemembered = false;
  #running = new Running();
  /** Ends with the mailbox that is shown. */
  #visit = new AbortController();
  /** Ends with the page. */
  #leaving = new AbortController();

  #head = new MailboxHead();
  #list = new MessageList();
  #empty = new EmptyMailbox();
  #notes = new ListNotes();
  #pane = new MessagePane();

  get route() {
    return this.#route;
  }

  set route(route) {
    this.#route = route;
    if (this.isConnected) this.#follow();
  }

  connectedCallback() {
    this.#leaving = new AbortController();
    const { signal } = this.#leaving;
    fill(
      this,
      h('section', { class: 'list-pane', 'aria-label': 'Messages' }, this.#head, this.#notes, this.#list, this.#empty),
      new PaneDivider(),
      this.#pane,
    );
    set(this.#pane, { role: 'region', 'aria-label': 'Message' });
    this.addEventListener('purge', () => this.#purge(), { signal });
    this.addEventListener('pick', (event) => this.#picked(/** @type {CustomEvent} */ (event).detail), { signal });
    this.addEventListener('act', (event) => this.#act(/** @type {CustomEvent} */ (event).detail), { signal });
    this.addEventListener('again', () => this.#messages.list(), { signal });
    this.addEventListener('back', () => this.#back(), { signal });
    this.addEventListener('read', (event) => this.#mark([/** @type {CustomEvent<Entry>} */ (event).detail], true), { signal });
    window.addEventListener('pagehide', () => this.#deletions.commit(), { signal });
    keys.add(mailboxKeys(this.#list, {
      step: (by, isExtending) => this.#step(by, isExtending),
      enter: () => this.#enter(),
      back: () => this.#stepBack(),
      unread: () => this.#act({ what: 'unread', ids: this.#list.meant }),
      remove: () => this.#delete(this.#list.meant),
      undo: () => this.#deletions.undo(),
    }), signal);
    this.#follow();
  }

  disconnectedCallback() {
    this.#leaving.abort();
    this.#close();
    this.#messages = new Messages('');
  }

  /** Shows what the address means. */
  #follow() {
    if (this.#route.page !== 'mailbox') return;
    const { mailbox, id } = this.#route;
    if (mailbox !== this.#messages.mailbox) this.#enterMailbox(mailbox);
    this.#running.stop();
    if (id === 'latest') this.#toLatest();
    // What is about to be deleted is gone already, for the reader.
    else if (id !== null && this.#messages.isHidden(id)) go(paths.mailbox(mailbox), { replace: true });
    else this.#show(id);
  }

  /** @param {string} mailbox */
  #enterMailbox(mailbox) {
    this.#close();
    const messages = this.#messages = new Messages(mailbox);
    this.#deletions = new Deletions(messages);
    this.#pane.shown = null;
    this.#isRemembered = false;
    this.#list.messages = messages;
    const { signal } = this.#visit = new AbortController();
    messages.addEventListener('change', () => this.#changed(), { signal });
    messages.addEventListener('arrived', (event) => this.#arrived(/** @type {CustomEvent<Entry[]>} */ (event).detail), { signal });
    messages.addEventListener('named', () => this.#named(mailbox), { signal });
    this.#notes.begin(messages);
    this.#changed();
    messages.start();
    this.#takeFocus();
  }

  /** Whoever comes from elsewhere begins here; who loads the document, at its top. */
  #takeFocus() {
    if (document.readyState !== 'complete' || document.activeElement !== document.body) return;
    if (NARROW.matches && this.#route.page === 'mailbox' && this.#route.id !== null) this.#pane.focus();
    else this.#head.focus();
  }

  /** What still happens to the mailbox is nothing to this page any more. */
  #close() {
    this.#visit.abort();
    this.#running.stop();
    this.#deletions.commit();
    this.#messages.stop();
  }

  /**
   * The server's own name takes the place of the one that was asked for.
   * @param {string} asked
   */
  #named(asked) {
    const { mailbox } = this.#messages;
    if (mailbox === asked || this.#route.page !== 'mailbox') return;
    prefs.forget(asked);
    prefs.opened(mailbox);
    go(paths.mailbox(mailbox, this.#route.id), { replace: true });
  }

  /** Something in the mailbox is different. */
  #changed() {
    const { state, entries, unread, mailbox } = this.#messages;
    const isListed = state === 'partial' || state === 'complete';
    if (isListed && !this.#isRemembered) {
      this.#isRemembered = true;
      prefs.opened(mailbox);
    }
    this.#head.show(mailbox, { all: entries.length, unread, isKnown: isListed, isMore: state === 'partial' });
    this.#notes.show(this.#messages);
    this.#list.update();
    this.#drawEmptiness();
    if (this.#route.page === 'mailbox' && this.#route.id === 'latest') this.#toLatest();
    else this.#pane.update(this.#messages);
    this.#drawTitle();
  }

  #drawTitle() {
    const { mailbox, unread } = this.#messages;
    const entry = this.#pane.shown === null ? undefined : this.#messages.find(this.#pane.shown);
    title(entry ? `${entry.summary.subject.trim() || '(no subject)'} · ${mailbox}` : mailbox, unread);
  }

  #drawEmptiness() {
    const hadFocus = this.#list.contains(document.activeElement);
    const isEmpty = this.#empty.show(this.#messages);
    this.#list.hidden = this.#messages.entries.length === 0;
    this.classList.toggle('nothing', isEmpty);
    if (hadFocus && isEmpty) this.#head.focus();
  }

  /** @param {Entry[]} entries */
  #arrived(entries) {
    this.#list.arrived(entries);
    notices.tell(entries[0].summary);
  }

  #toLatest() {
    const newest = this.#messages.entries.at(0);
    if (newest && this.#messages.state !== 'waiting') go(paths.mailbox(this.#messages.mailbox, newest.id), { replace: true });
    else this.#show(null);
  }

  /** @param {string | null} id */
  #show(id) {
    this.dataset.pane = id === null ? 'list' : 'message';
    // In one column the list stays where it was left.
    if (id !== null || !NARROW.matches) this.#list.current = id;
    else this.#list.reveal();
    if (id === this.#pane.shown && id !== null) return;
    this.#pane.show(this.#messages, id);
    this.#drawTitle();
  }

  /**
   * To another message, in the list; the focus stays in the message if it is there.
   * @param {number} by
   * @param {boolean} isExtending
   */
  #step(by, isExtending) {
    if (!this.#pane.contains(document.activeElement)) this.#list.focus();
    this.#list.move(by, isExtending);
  }

  /** @param {{ id: string, how: 'move' | 'open' }} pick */
  #picked({ id, how }) {
    this.#running.stop();
    if (how === 'open') {
      if (id === this.#pane.shown) this.#enter();
      else this.#open(id);
      // In one column the list, and with it the focus, is gone now.
      if (NARROW.matches) this.#pane.focus();
      return;
    }
    // In one column the list would be gone after the first step.
    if (NARROW.matches && this.dataset.pane === 'list') return;
    // Whoever went on by selecting is elsewhere when it is time, and is not called back.
    this.#running.step(() => this.#list.current === id && this.#open(id, { replace: this.#pane.shown !== null }));
  }

  /**
   * @param {string} id
   * @param {{ replace?: boolean }} [how]
   */
  #open(id, { replace = false } = {}) {
    const from = this.#pane.shown === null ? 'list' : undefined;
    go(paths.mailbox(this.#messages.mailbox, id), replace ? { replace } : { state: { ...history.state, from } });
  }

  /** From the list into the message. */
  #enter() {
    const { current } = this.#list;
    if (current === null) return;
    if (current !== this.#pane.shown) this.#open(current);
    this.#pane.focus();
  }

  /** From the message to the list. */
  #back() {
    if (!NARROW.matches) return this.#list.focus();
    moves.addEventListener('move', () => this.#list.focus(), { once: true });
    if (history.state?.from === 'list') history.back();
    else go(paths.mailbox(this.#messages.mailbox));
  }

  #stepBack() {
    const inMessage = NARROW.matches ? this.dataset.pane === 'message' : this.#pane.contains(document.activeElement);
    if (inMessage) return this.#back();
    this.#list.stepBack();
    // Selecting has moved the cursor away from the message that is read, which is the one that is meant now.
    if (this.#pane.shown !== null) this.#list.current = this.#pane.shown;
  }

  /** @param {{ what: 'delete' | 'read' | 'unread', ids: string[] }} act */
  #act({ what, ids }) {
    if (what === 'delete') return this.#delete(ids);
    this.#running.stop();
    this.#mark(ids.flatMap((id) => this.#messages.find(id) ?? []), what === 'read');
  }

  /**
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  async #mark(entries, seen) {
    try {
      await this.#messages.mark(entries, seen);
    } catch (error) {
      toast(`That could not be marked. ${api.sentence(error)}`, { bad: true });
    }
  }

  /** @param {string[]} ids */
  #delete(ids) {
    if (ids.length === 0) return;
    const messages = this.#messages;
    // All of so many are deleted faster by emptying the mailbox; it is asked about either way.
    if (ids.length > MOST_UNDOABLE && ids.length === messages.entries.length && messages.isWhole) {
      this.#purge();
      return;
    }
    // Whoever runs means the message at the cursor, which is not shown yet.
    const left = this.#running.stop() ? this.#list.current : this.#pane.shown;
    const isLeft = left !== null && ids.includes(left);
    const cursor = this.#list.current;
    const to = (/** @type {string | null} */ id) => this.#isOf(messages) && go(paths.mailbox(messages.mailbox, id), { replace: true });
    const leaving = () => {
      const next = this.#list.neighbour(ids);
      if (isLeft) to(next);
      else if (this.#isOf(messages) && this.#list.current !== null && ids.includes(this.#list.current)) this.#list.current = next;
    };
    const undone = () => {
      if (isLeft) to(left);
      else if (this.#isOf(messages)) this.#list.current = cursor;
    };
    this.#deletions.begin(ids, { leaving, undone });
  }

  async #purge() {
    const messages = this.#messages;
    this.#running.stop();
    if (!(await this.#deletions.empty()) || !this.#isOf(messages)) return;
    go(paths.mailbox(messages.mailbox), { replace: true });
    // The button that was pressed has nothing left to do.
    this.#head.focus();
  }

  /**
   * Whether this is still the page of these messages: whoever was asked something may have gone elsewhere meanwhile.
   * @param {Messages} messages
   */
  #isOf(messages) {
    return this.isConnected && this.#messages === messages;
  }
}

customElements.define('mailbox-page', MailboxPage);
