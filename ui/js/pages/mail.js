// The page of a list of messages: the inbox, a mailbox or search results, with the mailboxes on the left and the selected message
// next to the list. It handles navigation, read state, deletion and undo; the list and the message are components.

/** @import { Entry } from '../lib/entries.js' */
/** @import { Scope } from '../lib/scope.js' */
/** @import { Route } from '../types.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as keys from '../lib/keys.js';
import * as notifications from '../lib/notifications.js';
import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import * as savedSearches from '../lib/saved-searches.js';
import * as settings from '../lib/settings.js';
import { fill, find, h, set } from '../lib/dom.js';
import { Debounce } from '../lib/debounce.js';
import { Deletions } from '../lib/deletions.js';
import { Mailboxes } from '../lib/mailboxes.js';
import { Messages } from '../lib/messages.js';
import { projects } from '../lib/projects.js';
import { Tags } from '../lib/tags.js';
import { go, moves } from '../lib/router.js';
import { describeList, listName } from '../lib/list-description.js';
import { isSameScope } from '../lib/scope.js';
import { ask, toast } from '../lib/feedback.js';
import { replaceTag } from '../lib/filters.js';
import { title } from '../lib/title.js';
import { EmptyList } from '../components/empty-list.js';
import { ListHead } from '../components/list-head.js';
import { ListNotes } from '../components/list-notes.js';
import { mailKeys } from '../components/mail-keys.js';
import { MailboxSidebar } from '../components/mailbox-sidebar.js';
import { MessageList } from '../components/message-list.js';
import { MessagePane } from '../components/message-pane.js';
import { allMailHidden } from '../components/all-mail-hidden.js';
import { PaneDivider } from '../components/pane-divider.js';
import { importDroppedFiles } from '../components/import-files.js';

const NARROW = matchMedia('(max-width: 46rem)');
/** How long the rows of the previous list stay while the next one is loading. */
const STALE_LIST_MS = 250;
/** No address has this scope, so the first one is always opened. @type {Scope} */
const NO_SCOPE = { mailbox: '', query: '' };

/** Whether the server has been asked if it shows the messages of all mailboxes, and whether it does. */
let isServerKnown = false;
let showsAllMail = true;

export class MailPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #messages = new Messages(NO_SCOPE);
  #deletions = new Deletions(this.#messages);
  #mailboxes = new Mailboxes();
  #tags = new Tags();
  /** The number of messages in all mailboxes, or null. @type {number | null} */
  #total = null;
  /** False if the server does not return the number. */
  #isTotalKnown = true;
  /** True if the mailbox was added to the recent ones. */
  #isInRecent = false;
  /** True if the newest message is to be opened when it is known. */
  #opensNewest = false;
  /** The number of messages that arrived while the tab was hidden. */
  #arrivedWhileHidden = 0;
  /** True while the rows are those of the previous list. */
  #isListStale = false;
  /** True if new messages are held back, also in the next list. */
  #isPaused = false;
  /** @type {number | undefined} */
  #staleTimer;
  #openDebounce = new Debounce();
  /** Aborted when another scope is shown. */
  #scopeClosed = new AbortController();
  /** Aborted when the page is removed. */
  #disconnected = new AbortController();

  #sidebar = new MailboxSidebar();
  #head = new ListHead();
  #list = new MessageList();
  #empty = new EmptyList();
  #notes = new ListNotes();
  #pane = new MessagePane();

  get route() {
    return this.#route;
  }

  set route(route) {
    this.#route = route;
    if (this.isConnected) this.#follow();
  }

  async connectedCallback() {
    const { signal } = this.#disconnected = new AbortController();
    fill(
      this,
      this.#sidebar,
      h('button', { class: 'sidebar-backdrop', type: 'button', 'aria-label': 'Close the list of mailboxes', onclick: () => this.#toggleSidebar(false) }),
      h('section', { class: 'list-pane', 'aria-label': 'Messages' }, this.#head, this.#list, this.#empty, this.#notes),
      new PaneDivider(),
      this.#pane,
    );
    importDroppedFiles(find(this, '.list-pane', HTMLElement), () => this.#messages.scope.mailbox, signal);
    set(this.#pane, { role: 'region', 'aria-label': 'Message' });
    this.#empty.hidden = true;
    this.#listen(signal);
    this.#sidebar.show(this.#mailboxes, this.#tags, signal);
    // The first page loads its messages at once, and shows them when it is known whether the server allows that.
    this.classList.toggle('is-pending', !isServerKnown);
    this.classList.toggle('has-sidebar', showsAllMail);
    this.#follow();
    const server = await api.about().catch(() => null);
    if (signal.aborted) return;
    const wasShown = showsAllMail;
    [isServerKnown, showsAllMail] = [true, server?.['monitor-visible'] !== false];
    this.classList.remove('is-pending');
    this.classList.toggle('has-sidebar', showsAllMail);
    if (showsAllMail) for (const data of [this.#mailboxes, this.#tags]) data.start(signal);
    if (wasShown !== showsAllMail && this.#messages.scope.mailbox === null) this.#follow();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#close();
    this.#deletions.commit();
    this.#messages = new Messages(NO_SCOPE);
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    /**
     * @template T
     * @param {string} name
     * @param {(detail: T) => void} run
     */
    const on = (name, run) => this.addEventListener(name, (event) => run(/** @type {CustomEvent<T>} */ (event).detail), { signal });
    on('pick', (/** @type {{ id: string, how: 'move' | 'open' }} */ pick) => this.#picked(pick));
    on('act', (/** @type {{ action: 'delete' | 'read' | 'unread', ids: string[] | null }} */ act) => this.#act(act));
    on('step', (/** @type {{ by: number }} */ { by }) => this.#step(by, false));
    on('filter', (/** @type {{ query: string }} */ { query }) => this.#search({ ...this.#messages.scope, query }));
    on('read', (/** @type {Entry} */ entry) => this.#mark([entry], true));
    on('tagged', (/** @type {{ id: string, tags: string[] }} */ { id, tags }) => this.#tagged(id, tags));
    on('tags-changed', (/** @type {{ from: string, to: string | null }} */ { from, to }) => this.#tagChanged(from, to));
    on('save-search', () => this.#saveSearch());
    on('retry', () => this.#messages.list());
    on('back', () => this.#back());
    on('pause', () => this.#togglePause());
    on('read-all', () => this.#markEverything(true));
    on('delete-all', () => this.#deleteEverything());
    on('toggle-sidebar', () => this.#toggleSidebar());
    this.addEventListener('keydown', (event) => event.key === 'Escape' && this.dataset.sidebar === 'open' && this.#toggleSidebar(false), { signal });
    document.addEventListener('search-input', (event) => this.#search(/** @type {CustomEvent<Scope>} */ (event).detail), { signal });
    document.addEventListener('visibilitychange', () => this.#visibilityChanged(), { signal });
    connection.changes.addEventListener('change', () => this.#drawHead(), { signal });
    this.#mailboxes.addEventListener('change', () => this.#mailboxesChanged(), { signal });
    window.addEventListener('restante:searches', () => this.#drawHead(), { signal });
    projects.addEventListener('change', () => this.#drawHead(), { signal });
    window.addEventListener('pagehide', () => this.#deletions.commit(), { signal });
    keys.add(mailKeys(this.#list, {
      step: (by, isExtending) => this.#step(by, isExtending),
      enter: () => this.#enter(),
      back: () => this.#stepBack(),
      unread: () => this.#act({ action: 'unread', ids: this.#list.targets }),
      remove: () => this.#act({ action: 'delete', ids: this.#list.targets }),
      undo: () => this.#deletions.undo(),
      pause: () => this.#togglePause(),
      isActive: () => !this.#isListStale && this.dataset.sidebar !== 'open',
    }), signal);
  }

  /** Shows the list and the message of the address. */
  #follow() {
    if (this.#route.page !== 'mail') return;
    const { scope, id } = this.#route;
    this.#toggleSidebar(false);
    if (!isSameScope(scope, this.#messages.scope) || this.#isHiddenScope(scope) !== this.classList.contains('is-hidden')) this.#open(scope);
    this.#openDebounce.cancel();
    if (this.#isHiddenScope(scope)) return;
    if (id === 'latest') this.#toLatest();
    // A message with a pending deletion is not shown.
    else if (id !== null && this.#messages.isHidden(id)) go(paths.list(scope), { replace: true });
    else this.#show(id);
  }

  /** @param {Scope} scope */
  #isHiddenScope({ mailbox }) {
    return mailbox === null && !showsAllMail;
  }

  /** @param {Scope} scope */
  #open(scope) {
    this.#close();
    const isHidden = this.#isHiddenScope(scope);
    this.classList.toggle('is-hidden', isHidden);
    this.querySelector('.all-mail-hidden')?.remove();
    const messages = this.#messages = new Messages(scope);
    this.#deletions.show(messages);
    this.#pane.shown = null;
    this.#isInRecent = false;
    this.#opensNewest = settings.get('openNewest') && this.#route.page === 'mail' && this.#route.id === null && scope.mailbox === null && scope.query === '';
    this.#sidebar.select(scope);
    this.#list.showFilters(scope);
    if (isHidden) {
      this.append(allMailHidden(scope));
      const field = this.querySelector('open-mailbox input');
      if (field instanceof HTMLElement) field.focus();
      return title('');
    }
    // The previous rows stay for a moment, so that the list does not flicker while the user types a query. They cannot be used.
    this.#isListStale = true;
    this.#list.deactivate();
    messages.pause(this.#isPaused);
    const { signal } = this.#scopeClosed = new AbortController();
    messages.addEventListener('change', () => this.#changed(), { signal });
    messages.addEventListener('arrived', (event) => this.#arrived(/** @type {CustomEvent<Entry[]>} */ (event).detail), { signal });
    messages.addEventListener('named', () => this.#named(scope), { signal });
    this.#notes.begin(messages);
    this.#staleTimer = window.setTimeout(() => this.#showList(), STALE_LIST_MS);
    this.#changed();
    messages.start();
    this.#setInitialFocus();
  }

  /** Replaces the rows of the previous list. */
  #showList() {
    clearTimeout(this.#staleTimer);
    if (!this.#isListStale) return;
    this.#isListStale = false;
    this.#list.messages = this.#messages;
    this.#changed();
  }

  /** Focuses the page after a navigation, but not when the document is loaded. */
  #setInitialFocus() {
    if (document.readyState !== 'complete' || document.activeElement !== document.body) return;
    if (NARROW.matches && this.#route.page === 'mail' && this.#route.id !== null) this.#pane.focus();
    else this.#head.focus();
  }

  /** Stops the updates of the current list. */
  #close() {
    this.#scopeClosed.abort();
    clearTimeout(this.#staleTimer);
    this.#openDebounce.cancel();
    this.#messages.stop();
  }

  /**
   * Replaces the name in the address by the server's name of the mailbox.
   * @param {Scope} requested
   */
  #named(requested) {
    const { mailbox } = this.#messages.scope;
    if (this.#route.page !== 'mail' || mailbox === null) return;
    if (requested.mailbox !== null) prefs.forget(requested.mailbox);
    prefs.opened(mailbox);
    this.#sidebar.select(this.#messages.scope);
    go(paths.list(this.#messages.scope, this.#route.id), { replace: true });
  }

  /** Called after every change of the list. */
  #changed() {
    const { state, scope: { mailbox } } = this.#messages;
    if (state === 'listed' && mailbox !== null && !this.#isInRecent) {
      this.#isInRecent = true;
      prefs.opened(mailbox);
    }
    this.#drawHead();
    if (this.#isListStale && state === 'waiting' && this.#messages.error === null) return;
    if (this.#isListStale) return this.#showList();
    this.#notes.show(this.#messages);
    this.#list.update();
    this.#drawEmpty();
    if (this.#route.page === 'mail' && this.#route.id === 'latest') this.#toLatest();
    else this.#pane.update(this.#messages, this.#description);
    if (this.#opensNewest && state === 'listed') this.#openNewest();
  }

  #openNewest() {
    const newest = this.#messages.entries.at(0);
    if (!newest || NARROW.matches) return;
    this.#opensNewest = false;
    this.#openMessage(newest.id, { replace: true });
  }

  #togglePause() {
    this.#isPaused = !this.#isPaused;
    this.#messages.pause(this.#isPaused);
  }

  /** Called after the mailboxes have changed. */
  async #mailboxesChanged() {
    this.#drawHead();
    const { scope: { mailbox, query }, isComplete } = this.#messages;
    if (mailbox !== null || query !== '' || isComplete || !this.#isTotalKnown) return;
    const usage = await api.usage(this.#disconnected.signal).catch(() => null);
    // A user of some mailboxes does not get the number.
    this.#isTotalKnown = usage?.messages !== null;
    this.#total = usage?.messages ?? null;
    this.#drawHead();
  }

  get #description() {
    return describeList(this.#messages, this.#mailboxes, this.#total);
  }

  #drawHead() {
    const { scope, state } = this.#messages;
    const isSaved = scope.query === '' || state === 'refused' ? null : savedSearches.find(scope) !== undefined;
    this.#head.show({ ...this.#description, isLost: connection.isLost(), isSaved });
    this.#drawTitle();
  }

  #drawTitle() {
    const { scope } = this.#messages;
    const entry = this.#pane.shown === null ? undefined : this.#messages.find(this.#pane.shown);
    const name = scope.query === '' ? listName(scope) : scope.query;
    // A list that is not complete has no number of its own. The mailboxes contain several copies of some messages, and are not loaded
    // while the tab is hidden.
    const { unread, total } = this.#description;
    const shownCount = unread ?? Math.min(this.#mailboxes.unread, total ?? Infinity) + this.#arrivedWhileHidden;
    title(entry ? `${entry.summary.subject.trim() || '(no subject)'} · ${name}` : name, shownCount);
  }

  #drawEmpty() {
    const hadFocus = this.#list.contains(document.activeElement);
    const isEmpty = this.#empty.show(this.#messages);
    // The filters stay, so that they can be removed.
    this.#list.hidden = this.#messages.entries.length === 0 && this.#messages.scope.query === '';
    this.classList.toggle('is-empty', isEmpty);
    if (hadFocus && isEmpty) this.#head.focus();
  }

  /** @param {Entry[]} entries */
  #arrived(entries) {
    this.#list.arrived(entries);
    notifications.notify(entries[0].summary, paths.list(this.#messages.scope, entries[0].id));
    if (!document.hidden) return;
    this.#arrivedWhileHidden += entries.length;
    this.#drawTitle();
  }

  #visibilityChanged() {
    if (document.hidden) return;
    this.#arrivedWhileHidden = 0;
    this.#drawTitle();
  }

  #toLatest() {
    const newest = this.#messages.entries.at(0);
    if (newest && this.#messages.state !== 'waiting') go(paths.list(this.#messages.scope, newest.id), { replace: true });
    else this.#show(null);
  }

  /** @param {string | null} id */
  #show(id) {
    this.dataset.pane = id === null ? 'list' : 'message';
    // In the one-column layout the list keeps its cursor.
    if (id !== null || !NARROW.matches) this.#list.current = id;
    else this.#list.reveal();
    this.#messages.shown = id;
    if (id !== null) this.#opensNewest = false;
    if (id === this.#pane.shown && id !== null) return;
    this.#pane.show(this.#messages, id, this.#description);
    this.#drawTitle();
  }

  /**
   * Shows the messages of another scope. While the user types a query, the history gets one entry.
   * @param {Scope} scope
   */
  #search(scope) {
    const before = this.#messages.scope;
    if (this.#route.page === 'mail' && !isSameScope(scope, before)) go(paths.list(scope), { replace: before.query !== '' && scope.query !== '' });
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
      else this.#openMessage(id);
      // In the one-column layout the list, and with it the focus, is hidden now.
      if (NARROW.matches) this.#pane.focus();
      return;
    }
    // In the one-column layout the list would be hidden after the first step.
    if (NARROW.matches && this.dataset.pane === 'list') return;
    // If the cursor has moved on in the meantime, this message is not opened.
    this.#openDebounce.run(() => this.#list.current === id && this.#openMessage(id, { replace: this.#pane.shown !== null }));
  }

  /**
   * @param {string} id
   * @param {{ replace?: boolean }} [how]
   */
  #openMessage(id, { replace = false } = {}) {
    const from = this.#pane.shown === null ? 'list' : undefined;
    go(paths.list(this.#messages.scope, id), replace ? { replace } : { state: { ...history.state, from } });
  }

  /** Moves the focus from the list to the message. */
  #enter() {
    const { current } = this.#list;
    if (current === null) return;
    if (current !== this.#pane.shown) this.#openMessage(current);
    this.#pane.focus();
  }

  /** Returns from the message to the list: in the one-column layout by navigation, otherwise by the focus. */
  #back() {
    if (!NARROW.matches) return this.#list.focus();
    this.#closeMessage();
  }

  #closeMessage() {
    moves.addEventListener('move', () => this.#list.focus(), { once: true });
    if (history.state?.from === 'list') history.back();
    else go(paths.list(this.#messages.scope));
  }

  /** Goes one step back: from the message to the list, clears the selection, closes the message. */
  #stepBack() {
    if (!NARROW.matches && this.#pane.contains(document.activeElement)) return this.#list.focus();
    if (this.#list.clearSelection()) {
      // Selecting may have moved the cursor: it returns to the message that is shown.
      if (this.#pane.shown !== null) this.#list.current = this.#pane.shown;
      return;
    }
    if (this.#pane.shown !== null) this.#closeMessage();
  }

  /** @param {{ action: 'delete' | 'read' | 'unread', ids: string[] | null }} act */
  #act({ action, ids }) {
    if (action === 'delete') return ids === null ? this.#deleteEverything() : this.#delete(ids);
    this.#openDebounce.cancel();
    if (action === 'unread' && (ids === null || ids.includes(this.#pane.shown ?? ''))) this.#pane.keepUnread();
    if (ids === null) return this.#markEverything(action === 'read');
    return this.#reportErrors(action === 'read', this.#messages.markIds(ids, action === 'read'));
  }

  /**
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  #mark(entries, seen) {
    return this.#reportErrors(seen, this.#messages.mark(entries, seen));
  }

  /** @param {boolean} seen */
  #markEverything(seen) {
    return this.#reportErrors(seen, this.#messages.markEverything(seen));
  }

  /**
   * @param {boolean} seen
   * @param {Promise<void>} marking
   */
  async #reportErrors(seen, marking) {
    try {
      await marking;
      this.#mailboxes.reload();
    } catch (error) {
      toast(`The messages could not be marked as ${seen ? 'read' : 'unread'}. ${api.sentence(error)}`, { bad: true });
    }
  }

  /**
   * @param {string} id
   * @param {string[]} tags
   */
  #tagged(id, tags) {
    this.#messages.showTags(id, tags);
    this.#tags.reload();
  }

  /**
   * A tag was renamed, or deleted if `to` is null.
   * @param {string} from
   * @param {string | null} to
   */
  #tagChanged(from, to) {
    const { scope } = this.#messages;
    const query = replaceTag(scope.query, from, to);
    const id = to !== null && this.#route.page === 'mail' ? this.#route.id : null;
    if (query !== scope.query) go(paths.list({ ...scope, query }, id), { replace: true });
    else this.#messages.list();
    this.#pane.reload();
  }

  #saveSearch() {
    const { scope } = this.#messages;
    ask({ title: 'Save this search', label: 'Name', value: scope.query.slice(0, savedSearches.MAX_NAME_LENGTH), maxLength: savedSearches.MAX_NAME_LENGTH, action: 'Save', run: (name) => savedSearches.save(name, scope) });
  }

  /** @param {string[]} ids */
  #delete(ids) {
    if (ids.length === 0) return;
    const messages = this.#messages;
    // While the user moves quickly, the message at the cursor is not shown yet.
    const current = this.#openDebounce.cancel() ? this.#list.current : this.#pane.shown;
    const isDeleted = current !== null && ids.includes(current);
    const cursor = this.#list.current;
    const to = (/** @type {string | null} */ id) => this.#isShowing(messages) && go(paths.list(messages.scope, id), { replace: true });
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

  async #deleteEverything() {
    const messages = this.#messages;
    this.#openDebounce.cancel();
    if (!(await this.#deletions.deleteEverything()) || !this.#isShowing(messages)) return;
    this.#list.selectAll(false);
    go(paths.list(messages.scope), { replace: true });
    // The pressed button is disabled now.
    this.#head.focus();
  }

  /**
   * Opens or closes the sidebar on a narrower screen, where it covers the rest of the page.
   * @param {boolean} [isOpen]
   */
  #toggleSidebar(isOpen = this.dataset.sidebar !== 'open') {
    const wasOpen = this.dataset.sidebar === 'open';
    this.dataset.sidebar = isOpen ? 'open' : 'closed';
    for (const part of this.querySelectorAll(':scope > :is(.list-pane, pane-divider, message-pane)')) part.toggleAttribute('inert', isOpen);
    this.#head.showSidebarState(isOpen);
    if (isOpen) this.#sidebar.focus();
    else if (wasOpen) this.#head.focusSidebarButton();
  }

  /**
   * Returns whether the page still shows these messages: the user may have navigated during a confirmation.
   * @param {Messages} messages
   */
  #isShowing(messages) {
    return this.isConnected && this.#messages === messages;
  }
}

customElements.define('mail-page', MailPage);
