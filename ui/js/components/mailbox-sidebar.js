// <mailbox-sidebar>: the navigation between projects, the inbox, saved searches, mailboxes and tags. It dispatches the bubbling event
// `tags-changed` with `{ from, to }` after a tag was renamed, or deleted if `to` is null.

/** @import { Mailboxes } from '../lib/mailboxes.js' */
/** @import { Scope } from '../lib/scope.js' */
/** @import { Tags } from '../lib/tags.js' */
/** @import { Mailbox } from '../types.js' */
/** @import { MenuItem } from './menu-button.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import * as savedSearches from '../lib/saved-searches.js';
import { fill, h, set } from '../lib/dom.js';
import { ask, confirm, toast } from '../lib/feedback.js';
import { fold, matcher } from '../lib/filter.js';
import { hasTerm, tagTerm } from '../lib/filters.js';
import { folderOf, ownerOf, withOwners } from '../lib/folders.js';
import { count, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { projects } from '../lib/projects.js';
import { isSameScope, scopeKey } from '../lib/scope.js';
import { colorTag } from '../lib/tags.js';
import { visible } from '../lib/visible.js';
import { ProjectSwitch } from './project-switch.js';
import { SidebarSection } from './sidebar-section.js';

const TYPING_DELAY_MS = 200;
/** The maximum number of tags that are shown. The filter finds the others. */
const MAX_TAGS = 100;
/** The limit of the server. */
const MAX_TAG_LENGTH = 64;

export class MailboxSidebar extends HTMLElement {
  /** @type {Mailboxes | null} */
  #mailboxes = null;
  /** @type {Tags | null} */
  #tags = null;
  /** The list that is shown. @type {Scope} */
  #scope = { mailbox: null, query: '' };
  /** @type {number | undefined} */
  #typeTimer;

  #inbox = h('a', { class: 'sidebar-link', href: paths.inbox() }, icon('envelope'), h('span', { class: 'truncate' }, 'Inbox'));
  #searchRows = new SidebarSection({ name: 'searches', heading: 'Saved searches', mark: () => icon('search'), menu: (key) => this.#searchMenu(key), emptied: () => this.focus() });
  #mailboxRows = new SidebarSection({ name: 'mailboxes', heading: 'Mailboxes', typed: () => this.#typed() });
  #tagRows = new SidebarSection({ name: 'tags', heading: 'Tags', mark: (tag) => colorTag(h('span', { class: 'tag-dot' }), tag), menu: (tag) => this.#tagMenu(tag), emptied: () => this.focus(), typed: () => this.#drawTags() });
  #note = h('p', { class: 'sidebar-note soft', role: 'status' });

  connectedCallback() {
    if (this.firstChild) return;
    this.id = 'mailbox-sidebar';
    this.#mailboxRows.element.append(this.#note);
    fill(this, h('nav', { 'aria-label': 'Mailboxes' }, new ProjectSwitch(), this.#inbox, this.#searchRows.element, this.#mailboxRows.element, this.#tagRows.element));
    this.#mailboxRows.whenLeft(() => this.#drawMailboxes());
  }

  disconnectedCallback() {
    clearTimeout(this.#typeTimer);
  }

  /** @override */
  focus() {
    this.#inbox.focus();
  }

  /**
   * Shows these mailboxes and tags until the signal is aborted.
   * @param {Mailboxes} mailboxes
   * @param {Tags} tags
   * @param {AbortSignal} signal
   */
  show(mailboxes, tags, signal) {
    [this.#mailboxes, this.#tags] = [mailboxes, tags];
    mailboxes.addEventListener('change', () => this.#drawMailboxes(), { signal });
    mailboxes.addEventListener('change', () => projects.update(mailboxes), { signal });
    tags.addEventListener('change', () => this.#drawTags(), { signal });
    window.addEventListener('restante:searches', () => this.#drawSearches(), { signal });
    this.#draw();
  }

  /** @param {Scope} scope The list that is shown. */
  select(scope) {
    this.#scope = scope;
    set(this.#inbox, { 'aria-current': scope.mailbox === null && scope.query === '' && 'page' });
    this.#draw();
  }

  #draw() {
    this.#drawSearches();
    this.#drawMailboxes();
    this.#drawTags();
  }

  #drawMailboxes() {
    const mailboxes = this.#mailboxes;
    if (!mailboxes) return;
    const shown = this.#shownMailboxes(mailboxes);
    const { isComplete, all } = mailboxes;
    this.#mailboxRows.filter.placeholder = isComplete ? 'Filter mailboxes' : 'Start of the name';
    this.#mailboxRows.show(withOwners(shown.map(({ name }) => name)).map((name) => {
      const { messages, unseen } = all.get(name) ?? { messages: 0, unseen: 0 };
      const folder = folderOf(name);
      return {
        key: name,
        label: folder ?? name,
        parent: folder === null ? undefined : ownerOf(name),
        href: paths.mailbox(name),
        title: all.has(name) || isComplete ? `${visible(name)}: ${plural(messages, 'message')}, ${unseen === 0 ? 'none' : count(unseen)} unread` : visible(name),
        count: unseen,
        countWords: 'unread',
        isUnread: unseen > 0,
        isCurrent: name === this.#scope.mailbox,
      };
    }), { all: isComplete ? all.size : Infinity, keepsOrder: isComplete && this.#mailboxRows.isUsed });
    this.#note.textContent = this.#describe(mailboxes, shown.length);
    this.#note.hidden = this.#note.textContent === '';
  }

  /**
   * @param {Mailboxes} mailboxes
   * @param {number} shown
   */
  #describe({ isLoaded, isComplete, error, all }, shown) {
    if (error !== null && !isLoaded) return `The mailboxes could not be loaded. ${api.sentence(error)}`;
    if (!isLoaded) return '';
    if (shown === 0) return this.#mailboxRows.filter.value.trim() === '' ? 'No mailboxes yet' : 'No matching mailboxes';
    return isComplete ? '' : `The first ${count(all.size)} mailboxes. Enter the start of a name to see others.`;
  }

  /**
   * Returns the mailboxes to show, without owners that are shown because of their folders: the one with the newest message first, or by name if only a part is loaded.
   * @param {Mailboxes} mailboxes
   */
  #shownMailboxes({ all, isComplete }) {
    if (!isComplete) return [...all.values()];
    const matches = matcher(this.#mailboxRows.filter.value);
    const newestFirst = (/** @type {Mailbox} */ a, /** @type {Mailbox} */ b) => b.newest['posix-millis'] - a.newest['posix-millis'];
    return [...all.values()].filter(({ name }) => matches?.(fold(name)) ?? true).sort(newestFirst);
  }

  #typed() {
    const mailboxes = this.#mailboxes;
    if (!mailboxes || mailboxes.isComplete) return this.#drawMailboxes();
    clearTimeout(this.#typeTimer);
    mailboxes.prefix = this.#mailboxRows.filter.value.trim();
    this.#typeTimer = window.setTimeout(() => mailboxes.load(), TYPING_DELAY_MS);
  }

  #drawTags() {
    const tags = this.#tags?.all ?? [];
    const matches = matcher(this.#tagRows.filter.value);
    this.#tagRows.element.hidden = tags.length === 0;
    this.#tagRows.show(tags.filter(({ name }) => matches?.(fold(name)) ?? true).slice(0, MAX_TAGS).map(({ name, count: messages }) => ({
      key: name,
      label: name,
      href: paths.search({ query: tagTerm(name) }),
      title: `${visible(name)}: ${plural(messages, 'message')}`,
      count: messages,
      countWords: 'messages',
      isCurrent: hasTerm(this.#scope.query, tagTerm(name)),
    })), { all: tags.length });
  }

  /**
   * @param {string} tag
   * @returns {MenuItem[]}
   */
  #tagMenu(tag) {
    const rename = async (/** @type {string} */ name) => name === tag || this.#tagChanged(tag, (await api.renameTag(tag, name)).name);
    return [
      { label: 'Rename…', run: () => ask({ title: `Rename the tag ${tag}`, label: 'New name', value: tag, maxLength: MAX_TAG_LENGTH, action: 'Rename', run: rename }) },
      { label: 'Delete…', run: () => this.#deleteTag(tag) },
    ];
  }

  /** @param {string} tag */
  async #deleteTag(tag) {
    const messages = this.#tags?.all.find(({ name }) => name === tag)?.count ?? 0;
    const isSure = await confirm({ title: `Delete the tag ${tag}?`, text: `The tag is removed from ${plural(messages, 'message')}. The messages are not deleted.`, action: 'Delete tag', danger: true });
    if (!isSure) return;
    try {
      await api.deleteTag(tag);
      this.#tagChanged(tag, null);
    } catch (error) {
      toast(`The tag could not be deleted. ${api.sentence(error)}`, { bad: true });
    }
  }

  /**
   * @param {string} from
   * @param {string | null} to
   */
  #tagChanged(from, to) {
    this.#tags?.load();
    this.dispatchEvent(new CustomEvent('tags-changed', { bubbles: true, detail: { from, to } }));
  }

  #drawSearches() {
    const all = savedSearches.all();
    this.#searchRows.element.hidden = all.length === 0;
    this.#searchRows.show(all.map((search) => ({
      key: scopeKey(search),
      label: search.name,
      href: paths.list(search),
      title: visible(search.mailbox === null ? search.query : `${search.query} in ${search.mailbox}`),
      count: 0,
      isCurrent: isSameScope(search, this.#scope),
    })), { all: 0 });
  }

  /**
   * @param {string} key
   * @returns {MenuItem[]}
   */
  #searchMenu(key) {
    const search = savedSearches.all().find((each) => scopeKey(each) === key);
    if (!search) return [];
    return [
      { label: 'Rename…', run: () => ask({ title: 'Rename the search', label: 'New name', value: search.name, maxLength: savedSearches.MAX_NAME_LENGTH, action: 'Rename', run: (name) => savedSearches.save(name, search) }) },
      { label: 'Delete', run: () => savedSearches.remove(search) },
    ];
  }
}

customElements.define('mailbox-sidebar', MailboxSidebar);
