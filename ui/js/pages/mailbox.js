// The page of a mailbox: the list of its messages next to the selected one. It handles navigation, read state, deletion and undo;
// the list and the message are components.

/** @import { Entry } from '../lib/entries.js' */
/** @import { Route } from '../types.js' */

import * as api from '../lib/api.js';
import * as keys from '../lib/keys.js';
import * as notifications from '../lib/notifications.js';
import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import { fill, h, set } from '../lib/dom.js';
import { Deletions, MAX_UNDOABLE } from '../lib/deletions.js';
import { Messages } from '../lib/messages.js';
import { go, moves } from '../lib/router.js';
import { Debounce } from '../lib/debounce.js';
import { toast } from '../lib/feedback.js';
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
  /** True if the mailbox was added to the recent ones. */
  #isInRecent = false;
  #openDebounce = new Debounce();
  /** Aborted when another mailbox is shown. */
  #mailboxClosed = new AbortController();
  /** Aborted when the page is removed. */
  #disconnected = new AbortController();

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
    this.#disconnected = new AbortController();
    const { signal } = this.#disconnected;
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
    this.addEventListener('retry', () => this.#messages.list(), { signal });
    this.addEventListener('back', () => this.#back(), { signal });
    this.addEventListener('read', (event) => this.#mark([/** @type {CustomEvent<Entry>} */ (event).detail], true), { signal });
    window.addEventListener('pagehide', () => this.#deletions.commit(), { signal });
    keys.add(mailboxKeys(this.#list, {
      step: (by, isExtending) => this.#step(by, isExtending),
      enter: () => this.#enter(),
      back: () => this.#stepBack(),
      unread: () => this.#act({ action: 'unread', ids: this.#list.targets }),
      remove: () => this.#delete(this.#list.targets),
      undo: () => this.#deletions.undo(),
    }), signal);
    this.#follow();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#close();
    this.#messages = new Messages('');
  }

  /** Shows the mailbox and message of the address. */
  #follow() {
    if (this.#route.page !== 'mailbox') return;
    const { mailbox, id } = this.#route;
    if (mailbox !== this.#messages.mailbox) this.#openMailbox(mailbox);
    this.#openDebounce.cancel();
    if (id === 'latest') this.#toLatest();
    // A message with a pending deletion is not shown.
    else if (id !== null && this.#messages.isHidden(id)) go(paths.mailbox(mailbox), { replace: true });
    else this.#show(id);
  }

  /** @param {string} mailbox */
  #openMailbox(mailbox) {
    this.#close();
    const messages = this.#messages = new Messages(mailbox);
    this.#deletions = new Deletions(messages);
    this.#pane.shown = null;
    this.#isInRecent = false;
    this.#list.messages = messages;
    const { signal } = this.#mailboxClosed = new AbortController();
    messages.addEventListener('change', () => this.#changed(), { signal });
    messages.addEventListener('arrived', (event) => this.#arrived(/** @type {CustomEvent<Entry[]>} */ (event).detail), { signal });
    messages.addEventListener('named', () => this.#named(mailbox), { signal });
    this.#notes.begin(messages);
    this.#changed();
    messages.start();
    this.#setInitialFocus();
  }

  /** Focuses the page after a navigation, but not when the document is loaded. */
  #setInitialFocus() {
    if (document.readyState !== 'complete' || document.activeElement !== document.body) return;
    if (NARROW.matches && this.#route.page === 'mailbox' && this.#route.id !== null) this.#pane.focus();
    else this.#head.focus();
  }

  /** Stops the updates of the current mailbox and commits its deletions. */
  #close() {
    this.#mailboxClosed.abort();
    this.#openDebounce.cancel();
    this.#deletions.commit();
    this.#messages.stop();
  }

  /**
   * Replaces the name in the address by the server's name of the mailbox.
   * @param {string} requested
   */
  #named(requested) {
    const { mailbox } = this.#messages;
    if (mailbox === requested || this.#route.page !== 'mailbox') return;
    prefs.forget(requested);
    prefs.opened(mailbox);
    go(paths.mailbox(mailbox, this.#route.id), { replace: true });
  }

  /** Called after every change of the mailbox. */
  #changed() {
    const { state, entries, unread, mailbox } = this.#messages;
    const isListed = state === 'partial' || state === 'complete';
    if (isListed && !this.#isInRecent) {
      this.#isInRecent = true;
      prefs.opened(mailbox);
    }
    this.#head.show(mailbox, { all: entries.length, unread, isKnown: isListed, isMore: state === 'partial' });
    this.#notes.show(this.#messages);
    this.#list.update();
    this.#drawEmpty();
    if (this.#route.page === 'mailbox' && this.#route.id === 'latest') this.#toLatest();
    else this.#pane.update(this.#messages);
    this.#drawTitle();
  }

  #drawTitle() {
    const { mailbox, unread } = this.#messages;
    const entry = this.#pane.shown === null ? undefined : this.#messages.find(this.#pane.shown);
    title(entry ? `${entry.summary.subject.trim() || '(no subject)'} · ${mailbox}` : mailbox, unread);
  }

  #drawEmpty() {
    const hadFocus = this.#list.contains(document.activeElement);
    const isEmpty = this.#empty.show(this.#messages);
    this.#list.hidden = this.#messages.entries.length === 0;
    this.classList.toggle('is-empty', isEmpty);
    if (hadFocus && isEmpty) this.#head.focus();
  }

  /** @param {Entry[]} entries */
  #arrived(entries) {
    this.#list.arrived(entries);
    notifications.notify(entries[0].summary);
  }

  #toLatest() {
    const newest = this.#messages.entries.at(0);
    if (newest && this.#messages.state !== 'waiting') go(paths.mailbox(this.#messages.mailbox, newest.id), { replace: true });
    else this.#show(null);
  }

  /** @param {string | null} id */
  #show(id) {
    this.dataset.pane = id === null ? 'list' : 'message';
    // In the one-column layout the list keeps its cursor.
    if (id !== null || !NARROW.matches) this.#list.current = id;
    else this.#list.reveal();
    if (id === this.#pane.shown && id !== null) return;
    this.#pane.show(this.#messages, id);
    this.#drawTitle();
  }

  /**
   * Moves to another message in the list. The focus stays in the message if it is there.
   * @param {number} by
   * @param {boolean} isExtending
   */
  #step(by, isExtending) {
    if (!this.#pane.contains(document.activeElement)) this.#list.focus();
    this.#list.move(by, isExtending);
  }

  /** @param {{ id: string, how: 'move' | 'open' }} pick */
  #picked({ id, how }) {
    this.#openDebounce.cancel();
    if (how === 'open') {
      if (id === this.#pane.shown) this.#enter();
      else this.#open(id);
      // In the one-column layout the list, and with it the focus, is hidden now.
      if (NARROW.matches) this.#pane.focus();
      return;
    }
    // In the one-column layout the list would be hidden after the first step.
    if (NARROW.matches && this.dataset.pane === 'list') return;
    // If the cursor has moved on in the meantime, this message is not opened.
    this.#openDebounce.run(() => this.#list.current === id && this.#open(id, { replace: this.#pane.shown !== null }));
  }

  /**
   * @param {string} id
   * @param {{ replace?: boolean }} [how]
   */
  #open(id, { replace = false } = {}) {
    const from = this.#pane.shown === null ? 'list' : undefined;
    go(paths.mailbox(this.#messages.mailbox, id), replace ? { replace } : { state: { ...history.state, from } });
  }

  /** Moves the focus from the list to the message. */
  #enter() {
    const { current } = this.#list;
    if (current === null) return;
    if (current !== this.#pane.shown) this.#open(current);
    this.#pane.focus();
  }

  /** Returns from the message to the list. */
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
    // Selecting may have moved the cursor: it returns to the message that is shown.
    if (this.#pane.shown !== null) this.#list.current = this.#pane.shown;
  }

  /** @param {{ action: 'delete' | 'read' | 'unread', ids: string[] }} act */
  #act({ action, ids }) {
    if (action === 'delete') return this.#delete(ids);
    this.#openDebounce.cancel();
    this.#mark(ids.flatMap((id) => this.#messages.find(id) ?? []), action === 'read');
  }

  /**
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  async #mark(entries, seen) {
    try {
      await this.#messages.mark(entries, seen);
    } catch (error) {
      toast(`The messages could not be marked as ${seen ? 'read' : 'unread'}. ${api.sentence(error)}`, { bad: true });
    }
  }

  /** @param {string[]} ids */
  #delete(ids) {
    if (ids.length === 0) return;
    const messages = this.#messages;
    // Emptying the mailbox is faster; both need a confirmation.
    if (ids.length > MAX_UNDOABLE && ids.length === messages.entries.length && messages.isComplete) {
      this.#purge();
      return;
    }
    // While the user moves quickly, the message at the cursor is not shown yet.
    const current = this.#openDebounce.cancel() ? this.#list.current : this.#pane.shown;
    const isDeleted = current !== null && ids.includes(current);
    const cursor = this.#list.current;
    const to = (/** @type {string | null} */ id) => this.#isShowing(messages) && go(paths.mailbox(messages.mailbox, id), { replace: true });
    const leaving = () => {
      const next = this.#list.neighbor(ids);
      if (isDeleted) to(next);
      else if (this.#isShowing(messages) && this.#list.current !== null && ids.includes(this.#list.current)) this.#list.current = next;
    };
    const undone = () => {
      if (isDeleted) to(current);
      else if (this.#isShowing(messages)) this.#list.current = cursor;
    };
    this.#deletions.start(ids, { leaving, undone });
  }

  async #purge() {
    const messages = this.#messages;
    this.#openDebounce.cancel();
    if (!(await this.#deletions.purge()) || !this.#isShowing(messages)) return;
    go(paths.mailbox(messages.mailbox), { replace: true });
    // The pressed button is disabled now.
    this.#head.focus();
  }

  /**
   * Returns whether the page still shows these messages: the user may have navigated during a confirmation.
   * @param {Messages} messages
   */
  #isShowing(messages) {
    return this.isConnected && this.#messages === messages;
  }
}

customElements.define('mailbox-page', MailboxPage);
