// The page `/search`: searches all mailboxes or one. The server parses the query. The results are saved when the user opens a
// message and returns.

/** @import { Hit, Route } from '../types.js' */

import * as api from '../lib/api.js';
import * as keys from '../lib/keys.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { SearchResults } from '../lib/search-results.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { go } from '../lib/router.js';
import { title } from '../lib/title.js';
import { visible } from '../lib/visible.js';
import { hitRow } from '../components/hit-row.js';
import { searchHelp } from '../components/search-help.js';

/** The state that is saved when the page is left. `number` identifies the history entry that it belongs to. */
const saved = { results: new SearchResults('', null), number: 0, scroll: 0, opened: -1 };

export class SearchPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #results = new SearchResults('', null);
  /** The results in the list. @type {Hit[]} */
  #drawn = [];
  /** Aborted when the page is removed. */
  #disconnected = new AbortController();
  /** Aborted when another search is shown. */
  #searchClosed = new AbortController();

  #heading = h('h1', { tabindex: -1 });
  #field = h('input', { class: 'field', id: 'search', type: 'search', 'aria-label': 'Search for', placeholder: 'Words, "a phrase", from:ann, has:attachment…', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', enterkeyhint: 'search', maxlength: 4096 });
  #everywhere = h('a', { class: 'search-wider' }, 'Search all mailboxes');
  #help = h('div');
  #notes = h('div', { class: 'search-notes', 'aria-live': 'polite' });
  #count = h('p', { class: 'search-count soft number', role: 'status' });
  #hits = h('ol', { class: 'hits sheet', 'aria-label': 'Messages found, newest first', hidden: true });
  #more = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.#results.loadMore() }, 'Show more');

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
    const form = h('form', { class: 'open-line', role: 'search', 'aria-label': 'Search messages', onsubmit: (event) => this.#submitted(event) }, this.#field, h('button', { class: 'button main', type: 'submit' }, 'Search'));
    fill(this, h('div', { class: 'page search' },
      h('div', { class: 'search-head' }, this.#heading, this.#everywhere),
      form, this.#help, this.#notes, this.#count, this.#hits, h('div', { class: 'search-more' }, this.#more)));
    this.#field.addEventListener('keydown', (event) => this.#pressedInField(event), { signal });
    this.#hits.addEventListener('click', ({ target }) => this.#save(target), { signal, capture: true });
    const group = 'Search';
    keys.add([
      { keys: ['j', 'ArrowDown'], group, label: 'Next message', run: () => this.#step(1) },
      { keys: ['k', 'ArrowUp'], group, label: 'Previous message', run: () => this.#step(-1) },
      { keys: ['s', '/'], group, label: 'Search for something else', run: () => this.#field.select() },
    ], signal);
    this.#follow();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#searchClosed.abort();
    this.#results.stop();
  }

  /** Runs the search of the address, or restores its results. */
  async #follow() {
    if (this.#route.page !== 'search') return;
    const { query, mailbox } = this.#route;
    this.#searchClosed.abort();
    const { signal } = this.#searchClosed = new AbortController();
    this.#results.stop();
    this.#field.value = query;
    title(query.trim() ? `${query.trim()} · Search` : 'Search');
    fill(this.#heading, mailbox === null ? 'Search all messages' : ['Search in ', h('bdi', {}, visible(mailbox))]);
    this.#everywhere.hidden = mailbox === null;
    this.#everywhere.href = paths.search({ query });
    fill(this.#help, searchHelp(query.trim() === ''));
    const isBack = history.state?.found === saved.number && saved.results.query === query && saved.results.mailbox === mailbox;
    this.#results = isBack ? saved.results : new SearchResults(query, mailbox);
    this.#results.addEventListener('change', () => this.#draw(), { signal });
    this.#draw();
    if (isBack) this.#restore();
    else if (query.trim() === '') this.#field.focus();
    else if (await this.#isAllowed(mailbox)) signal.aborted || this.#results.load();
  }

  /**
   * Returns whether the search is allowed. If the monitor is disabled, searching all mailboxes is too.
   * @param {string | null} mailbox
   */
  async #isAllowed(mailbox) {
    const server = mailbox === null ? await api.about().catch(() => null) : null;
    if (server?.['monitor-visible'] !== false) return true;
    fill(this.#notes, h('p', { class: 'note' }, icon('shield'), 'This server does not allow searching all mailboxes. Open a mailbox and search there.'));
    return false;
  }

  #restore() {
    const main = this.closest('main');
    if (main) main.scrollTop = saved.scroll;
    this.#links()[saved.opened]?.focus({ preventScroll: true });
  }

  /**
   * Saves the results before another page is opened.
   * @param {EventTarget | null} target
   */
  #save(target) {
    const row = target instanceof Element ? target.closest('.hit') : null;
    const number = saved.number + 1;
    Object.assign(saved, { results: this.#results, number, scroll: this.closest('main')?.scrollTop ?? 0, opened: [...this.#hits.children].findIndex((one) => one === row) });
    history.replaceState({ ...history.state, found: number }, '');
  }

  /** @param {Event} event */
  #submitted(event) {
    event.preventDefault();
    if (this.#route.page !== 'search') return;
    const path = paths.search({ query: this.#field.value.trim(), mailbox: this.#route.mailbox });
    // The same query can have other results now.
    if (path === location.pathname + location.search) this.#results.load();
    else go(path);
  }

  /** @param {KeyboardEvent} event */
  #pressedInField(event) {
    if (event.isComposing) return;
    if (event.key === 'Escape' && this.#field.value === '') this.#field.blur();
    if (event.key !== 'ArrowDown') return;
    event.preventDefault();
    this.#step(1);
  }

  /** @returns {HTMLElement[]} */
  #links() {
    return [...this.#hits.querySelectorAll('.hit-link')].filter((link) => link instanceof HTMLElement);
  }

  /** @param {number} by */
  #step(by) {
    const links = this.#links();
    const focused = document.activeElement?.closest('.hit')?.querySelector('.hit-link');
    const at = links.findIndex((link) => link === focused);
    links[Math.max(0, Math.min(at + by, links.length - 1))]?.focus();
  }

  #draw() {
    const { hits, next, isLoading, isLoaded, isComplete, error } = this.#results;
    const hadFocus = document.activeElement === this.#more;
    // The next page is appended; the previous ones stay as they are.
    const isSame = this.#drawn.every((hit, at) => hit === hits[at]);
    const drawn = isSame ? this.#drawn.length : 0;
    if (!isSame) fill(this.#hits);
    this.#hits.append(...hits.slice(drawn).map(hitRow));
    this.#drawn = hits;
    this.#hits.hidden = hits.length === 0;
    this.#more.hidden = next === null;
    if (hadFocus && drawn < hits.length) this.#links()[drawn]?.focus();
    const found = `${plural(hits.length, 'message')}${next === null ? '' : ', and more'}`;
    this.#count.textContent = hits.length > 0 ? found : isLoading && !isLoaded ? 'Searching…' : '';
    fill(this.#notes, error !== null && this.#problem(error), error === null && !isComplete && incompleteNote(), error === null && isLoaded && hits.length === 0 && this.#nothing());
  }

  /** @param {unknown} error */
  #problem(error) {
    const { query } = this.#results;
    const { status, position } = error instanceof api.ApiError ? error : { status: 0, position: null };
    const isFinal = status >= 400 && status < 500;
    const retry = h('button', { class: 'button small', type: 'button', onclick: () => this.#results.load() }, 'Try again');
    return h('div', { class: 'note bad search-problem', role: 'alert' }, icon('warning'),
      h('div', {}, h('p', {}, api.sentence(error)), position !== null && markError(query, position)), !isFinal && retry);
  }

  #nothing() {
    return h('div', { class: 'empty' }, icon('search'), h('h2', {}, 'No messages found'),
      h('p', {}, this.#results.mailbox === null ? 'No message matches all terms. Use fewer words, or only the start of a word, such as log.' : 'No message in this mailbox matches.'));
  }
}

function incompleteNote() {
  return h('p', { class: 'note warn' }, icon('warning'), 'The search index is not complete yet, so messages may be missing. The results are updated automatically.');
}

/**
 * Returns the query with the position of the error marked.
 * @param {string} query
 * @param {number} position
 */
function markError(query, position) {
  const characters = [...query];
  const text = (/** @type {number} */ from, /** @type {number | undefined} */ to = undefined) => visible(characters.slice(from, to).join(''));
  return h('p', { class: 'search-error-position mono' }, text(0, position), h('mark', {}, text(position, position + 1) || '\u00a0'), text(position + 1));
}

customElements.define('search-page', SearchPage);
