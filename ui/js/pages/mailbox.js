// The page of a mailbox: the list of its messages beside the one that is read. Here is what happens when something is
// chosen: which message is shown, where the address goes, what is marked, deleted and brought back.

/** @import { Entry } from '../lib/entries.js' */
/** @import { Message, Route } from '../types.js' */

import * as api from '../lib/api.js';
import * as keys from '../lib/keys.js';
import * as notices from '../lib/notices.js';
import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import { fill, h, set } from '../lib/dom.js';
import { count, plural } from '../lib/format.js';
import { Deletions } from '../lib/deletions.js';
import { Messages } from '../lib/messages.js';
import { go } from '../lib/router.js';
import { ask, toast } from '../lib/talk.js';
import { title } from '../lib/title.js';
import { EmptyMailbox } from '../components/empty-mailbox.js';
import { MailboxHead } from '../components/mailbox-head.js';
import { MessageList } from '../components/message-list.js';
import { MessagePane } from '../components/message-pane.js';
import { PaneDivider } from '../components/pane-divider.js';

const NARROW = matchMedia('(max-width: 46rem)');
/** Whoever runs through the list wants to see where they stop, not all on the way. */
const RUNNING = 150;
/** Before this, waiting is not worth a word. */
const SOON = 200;

export class MailboxPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #messages = new Messages('');
  #deletions = new Deletions(this.#messages);
  /** Whether the message that is shown was in the list when that was looked at last. */
  #wasThere = false;
  /** The message that was read before the list knew of it, and is still to be marked. @type {string | null} */
  #unmarked = null;
  /** Whether this browser remembers that the mailbox was opened. */
  #isRemembered = false;
  #movedAt = 0;
  /** @type {number | undefined} */
  #moving;
  /** @type {number | undefined} */
  #waiting;
  /** Ends with the mailbox that is shown. */
  #open = new AbortController();
  /** Ends with the page. */
  #leaving = new AbortController();

  #head = new MailboxHead();
  #list = new MessageList();
  #empty = new EmptyMailbox();
  #note = h('p', { class: 'note list-note', hidden: true });
  #wait = h('p', { class: 'list-none soft', role: 'status', hidden: true }, 'Loading…');
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
      h('section', { class: 'list-pane', 'aria-label': 'Messages' }, this.#head, this.#note, this.#wait, this.#list, this.#empty),
      new PaneDivider(),
      this.#pane,
    );
    set(this.#pane, { role: 'region', 'aria-label': 'Message' });
    this.addEventListener('purge', () => this.#purge(), { signal });
    this.addEventListener('pick', (event) => this.#picked(/** @type {CustomEvent} */ (event).detail), { signal });
    this.addEventListener('act', (event) => this.#act(/** @type {CustomEvent} */ (event).detail), { signal });
    this.addEventListener('back', () => this.#back(), { signal });
    this.addEventListener('message-loaded', (event) => this.#loaded(/** @type {CustomEvent<Message>} */ (event).detail), { signal });
    window.addEventListener('pagehide', () => this.#deletions.commit(), { signal });
    keys.add(this.#shortcuts(), signal);
    this.#follow();
  }

  disconnectedCallback() {
    this.#leaving.abort();
    this.#close();
    this.#messages = new Messages('');
  }

  /** @returns {import('../lib/keys.js').Shortcut[]} */
  #shortcuts() {
    const group = 'Mailbox';
    // In the message, and on the divider, these keys have their own meaning.
    const inList = (/** @type {KeyboardEvent} */ { target }) => !(target instanceof Element && target.closest('message-pane, pane-divider'));
    return [
      { keys: ['j', 'ArrowDown'], group, label: 'The next message', when: (event) => event.key === 'j' || inList(event), run: () => this.#list.move(1) },
      { keys: ['k', 'ArrowUp'], group, label: 'The message before', when: (event) => event.key === 'k' || inList(event), run: () => this.#list.move(-1) },
      { keys: ['Enter'], group, label: 'Into the message', when: inList, run: () => this.#enter() },
      { keys: ['Escape'], group, label: 'Back: to the list, select none, clear the filter', run: () => this.#stepBack() },
      { keys: ['/'], group, label: 'Filter', run: () => this.#list.focusFilter() },
      { keys: ['u'], group, label: 'Mark as unread', run: () => this.#unread() },
      { keys: ['x'], group, label: 'Select the message, or not', run: () => this.#list.current !== null && this.#list.toggle(this.#list.current) },
      { keys: ['* a'], group, label: 'Select all', run: () => this.#list.selectAll() },
      { keys: ['Delete', '#'], group, label: 'Delete the message, or those selected', run: () => this.#delete(this.#list.meant) },
      { keys: ['z'], group, label: 'Bring back what was just deleted', run: () => this.#deletions.undo() },
    ];
  }

  /** Shows what the address means. */
  #follow() {
    if (this.#route.page !== 'mailbox') return;
    const { mailbox, id } = this.#route;
    if (mailbox !== this.#messages.mailbox) this.#enterMailbox(mailbox);
    clearTimeout(this.#moving);
    if (id === 'latest') this.#toLatest();
    else this.#show(id);
  }

  /** @param {string} mailbox */
  #enterMailbox(mailbox) {
    this.#close();
    const messages = this.#messages = new Messages(mailbox);
    this.#deletions = new Deletions(messages);
    this.#pane.shown = null;
    this.#unmarked = null;
    this.#isRemembered = false;
    this.#list.messages = messages;
    const { signal } = this.#open = new AbortController();
    messages.addEventListener('change', () => this.#changed(), { signal });
    messages.addEventListener('arrived', (event) => this.#arrived(/** @type {CustomEvent<Entry[]>} */ (event).detail), { signal });
    messages.addEventListener('named', () => this.#named(mailbox), { signal });
    this.#waiting = window.setTimeout(() => (this.#wait.hidden = messages.state !== 'waiting' || messages.error !== null), SOON);
    this.#changed();
    messages.start();
  }

  /** What still happens to the mailbox is nothing to this page any more. */
  #close() {
    this.#open.abort();
    clearTimeout(this.#waiting);
    clearTimeout(this.#moving);
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
    const { state, error, entries, unread, mailbox, isCut } = this.#messages;
    const isListed = state === 'partial' || state === 'complete';
    if (isListed && !this.#isRemembered) {
      this.#isRemembered = true;
      prefs.opened(mailbox);
    }
    title(mailbox, unread);
    this.#wait.hidden ||= isListed || error !== null;
    this.#head.show(mailbox, { all: entries.length, unread, isKnown: isListed, isMore: state === 'partial' });
    this.#list.update();
    this.#note.hidden = !isCut;
    this.#note.textContent = isCut ? `Only the newest ${count(entries.length)} messages are shown here.` : '';
    this.#drawEmptiness(isListed);
    if (this.#route.page === 'mailbox' && this.#route.id === 'latest') this.#toLatest();
    else this.#lookForShown();
    this.#markRead();
  }

  /** Whether the message that is shown is still there, and where. */
  #lookForShown() {
    const { shown } = this.#pane;
    const place = shown === null ? -1 : this.#messages.entries.findIndex(({ id }) => id === shown);
    if (this.#wasThere && place < 0) this.#pane.lookAgain(this.#messages.mailbox);
    this.#wasThere = place >= 0;
    this.#pane.stands(place, this.#messages.entries.length);
  }

  /** @param {boolean} isListed */
  #drawEmptiness(isListed) {
    const { state, error, entries, mailbox } = this.#messages;
    const isEmpty = entries.length === 0 && (isListed || error !== null);
    const hadFocus = this.#list.contains(document.activeElement);
    this.#list.hidden = entries.length === 0;
    this.#empty.hidden = !isEmpty;
    this.classList.toggle('nothing', isEmpty);
    if (hadFocus && isEmpty) this.#head.focus();
    if (!isEmpty) return;
    if (state === 'refused') this.#empty.refuse(api.sentence(error));
    else if (isListed) this.#empty.invite(mailbox);
    else this.#empty.fail(api.sentence(error), () => this.#messages.list());
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
    this.#wasThere = false;
    this.#pane.show(this.#messages.mailbox, id);
    this.#lookForShown();
  }

  /** @param {Message} message */
  #loaded(message) {
    if (message.id !== this.#pane.shown) return;
    this.#unmarked = message.id;
    this.#markRead();
  }

  /** Marks the message that is shown as read, as soon as the list knows of it: either may be loaded first. */
  #markRead() {
    const entry = this.#unmarked !== null && this.#unmarked === this.#pane.shown ? this.#messages.find(this.#unmarked) : undefined;
    if (!entry) return;
    this.#unmarked = null;
    this.#mark([entry], true);
  }

  /** @param {{ id: string, how: 'move' | 'open' }} pick */
  #picked({ id, how }) {
    clearTimeout(this.#moving);
    const path = paths.mailbox(this.#messages.mailbox, id);
    if (how === 'open') {
      if (id === this.#pane.shown) this.#enter();
      else go(path);
      // In one column the list, and with it the focus, is gone now.
      if (NARROW.matches) this.#pane.focus();
      return;
    }
    // In one column the list would be gone after the first step.
    if (NARROW.matches && this.dataset.pane === 'list') return;
    const isRunning = performance.now() - this.#movedAt < RUNNING;
    this.#movedAt = performance.now();
    const move = () => go(path, { replace: this.#pane.shown !== null });
    if (isRunning) this.#moving = window.setTimeout(move, RUNNING);
    else move();
  }

  /** From the list into the message. */
  #enter() {
    const { current } = this.#list;
    if (current === null) return;
    if (current !== this.#pane.shown) go(paths.mailbox(this.#messages.mailbox, current));
    this.#pane.focus();
  }

  /** From the message to the list. */
  #back() {
    if (NARROW.matches) go(paths.mailbox(this.#messages.mailbox));
    this.#list.focus();
  }

  #stepBack() {
    const inMessage = NARROW.matches ? this.dataset.pane === 'message' : this.#pane.contains(document.activeElement);
    if (inMessage) this.#back();
    else this.#list.stepBack();
  }

  /** @param {{ what: 'delete' | 'read' | 'unread', ids: string[] }} act */
  #act({ what, ids }) {
    if (what === 'delete') {
      this.#delete(ids);
      return;
    }
    this.#mark(ids.flatMap((id) => this.#messages.find(id) ?? []), what === 'read');
    this.#list.selectAll(false);
  }

  #unread() {
    this.#mark(this.#list.meant.flatMap((id) => this.#messages.find(id) ?? []), false);
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
    const shown = this.#pane.shown !== null && ids.includes(this.#pane.shown) ? this.#pane.shown : null;
    const next = this.#list.neighbour(ids);
    const to = (/** @type {string | null} */ id) => this.isConnected && go(paths.mailbox(this.#messages.mailbox, id), { replace: true });
    this.#deletions.begin(ids, {
      leaving: () => {
        if (shown !== null) to(next);
        else if (this.#list.current !== null && ids.includes(this.#list.current)) this.#list.current = next;
      },
      undone: () => shown !== null && to(shown),
    });
  }

  async #purge() {
    const { entries, mailbox } = this.#messages;
    const all = plural(entries.length, 'message');
    const isSure = await ask({ title: `Empty the mailbox ${mailbox}?`, text: `All that is in it, ${all}, is deleted. This cannot be undone.`, yes: `Delete ${all}`, danger: true });
    if (!isSure) return;
    const ids = this.#messages.entries.map(({ id }) => id);
    try {
      await api.purge(mailbox);
      this.#deletions.forget();
      this.#messages.drop(ids);
      if (this.isConnected) go(paths.mailbox(mailbox), { replace: true });
      // The button that was pressed has nothing left to do.
      this.#head.focus();
      toast(`Deleted ${all}.`);
    } catch (error) {
      toast(`The mailbox could not be emptied. ${api.sentence(error)}`, { bad: true });
    }
  }
}

customElements.define('mailbox-page', MailboxPage);
