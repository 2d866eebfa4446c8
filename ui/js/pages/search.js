// The page `/search`: what the server finds for a question, in all mail or in one mailbox. The language is the server's:
// nothing of the question is understood here. Whoever opens a message and comes back finds the page as it was left.

/** @import { Hit, Route } from '../types.js' */

import * as api from '../lib/api.js';
import * as keys from '../lib/keys.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { Finds } from '../lib/finds.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { go } from '../lib/router.js';
import { title } from '../lib/title.js';
import { visible } from '../lib/visible.js';
import { hitRow } from '../components/hit-row.js';
import { searchHelp } from '../components/search-help.js';

/** What outlives the page, for the way back: the entry of the history that it belongs to has its number. */
const kept = { finds: new Finds('', null), number: 0, scroll: 0, opened: -1 };

export class SearchPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #finds = new Finds('', null);
  /** What is in the list. @type {Hit[]} */
  #drawn = [];
  /** Ends with the page. */
  #leaving = new AbortController();
  /** Ends with the search that is shown. */
  #visit = new AbortController();

  #heading = h('h1', { tabindex: -1 });
  #field = h('input', { class: 'field', id: 'search', type: 'search', 'aria-label': 'Search for', placeholder: 'Words, "a phrase", from:ann, has:attachment…', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', enterkeyhint: 'search', maxlength: 4096 });
  #everywhere = h('a', { class: 'search-wider' }, 'Search all mailboxes');
  #help = h('div');
  #notes = h('div', { class: 'search-notes', 'aria-live': 'polite' });
  #count = h('p', { class: 'search-count soft number', role: 'status' });
  #hits = h('ol', { class: 'hits sheet', 'aria-label': 'Messages found, newest first', hidden: true });
  #more = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.#finds.more() }, 'Show more');

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
    const form = h('form', { class: 'open-line', role: 'search', 'aria-label': 'Search mail', onsubmit: (event) => this.#submitted(event) }, this.#field, h('button', { class: 'button main', type: 'submit' }, 'Search'));
    fill(this, h('div', { class: 'page search' },
      h('div', { class: 'search-head' }, this.#heading, this.#everywhere),
      form, this.#help, this.#notes, this.#count, this.#hits, h('div', { class: 'search-more' }, this.#more)));
    this.#field.addEventListener('keydown', (event) => this.#inField(event), { signal });
    this.#hits.addEventListener('click', ({ target }) => this.#remember(target), { signal, capture: true });
    const group = 'Search';
    keys.add([
      { keys: ['j', 'ArrowDown'], group, label: 'The next message', run: () => this.#step(1) },
      { keys: ['k', 'ArrowUp'], group, label: 'The message before', run: () => this.#step(-1) },
      { keys: ['s', '/'], group, label: 'Search for something else', run: () => this.#field.select() },
    ], signal);
    this.#follow();
  }

  disconnectedCallback() {
    this.#leaving.abort();
    this.#visit.abort();
    this.#finds.stop();
  }

  /** Shows what the address asks for. */
  async #follow() {
    if (this.#route.page !== 'search') return;
    const { query, mailbox } = this.#route;
    this.#visit.abort();
    const { signal } = this.#visit = new AbortController();
    this.#finds.stop();
    this.#field.value = query;
    title(query.trim() ? `${query.trim()} · Search` : 'Search');
    fill(this.#heading, mailbox === null ? 'Search all mail' : ['Search in ', h('bdi', {}, visible(mailbox))]);
    this.#everywhere.hidden = mailbox === null;
    this.#everywhere.href = paths.search({ query });
    fill(this.#help, searchHelp(query.trim() === ''));
    const isBack = history.state?.found === kept.number && kept.finds.query === query && kept.finds.mailbox === mailbox;
    this.#finds = isBack ? kept.finds : new Finds(query, mailbox);
    this.#finds.addEventListener('change', () => this.#draw(), { signal });
    this.#draw();
    if (isBack) this.#comeBack();
    else if (query.trim() === '') this.#field.focus();
    else if (await this.#isAllowed(mailbox)) signal.aborted || this.#finds.ask();
  }

  /**
   * Who may not watch the mail of all may not search it either.
   * @param {string | null} mailbox
   */
  async #isAllowed(mailbox) {
    const server = mailbox === null ? await api.about().catch(() => null) : null;
    if (server?.['monitor-visible'] !== false) return true;
    fill(this.#notes, h('p', { class: 'note' }, icon('shield'), 'This server does not show the mail of all mailboxes. Open one of them, and search there.'));
    return false;
  }

  #comeBack() {
    const place = this.closest('main');
    if (place) place.scrollTop = kept.scroll;
    this.#links()[kept.opened]?.focus({ preventScroll: true });
  }

  /**
   * Keeps what is found for the way back, before another page is opened.
   * @param {EventTarget | null} target
   */
  #remember(target) {
    const row = target instanceof Element ? target.closest('.hit') : null;
    const number = kept.number + 1;
    Object.assign(kept, { finds: this.#finds, number, scroll: this.closest('main')?.scrollTop ?? 0, opened: [...this.#hits.children].findIndex((one) => one === row) });
    history.replaceState({ ...history.state, found: number }, '');
  }

  /** @param {Event} event */
  #submitted(event) {
    event.preventDefault();
    if (this.#route.page !== 'search') return;
    const path = paths.search({ query: this.#field.value.trim(), mailbox: this.#route.mailbox });
    // The same question once more may have another answer.
    if (path === location.pathname + location.search) this.#finds.ask();
    else go(path);
  }

  /** @param {KeyboardEvent} event */
  #inField(event) {
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
    const here = document.activeElement?.closest('.hit')?.querySelector('.hit-link');
    const at = links.findIndex((link) => link === here);
    links[Math.max(0, Math.min(at + by, links.length - 1))]?.focus();
  }

  #draw() {
    const { hits, next, isAsking, isAnswered, isComplete, error } = this.#finds;
    const hadFocus = document.activeElement === this.#more;
    // A next page comes below the ones before, which stay as they are.
    const isSame = this.#drawn.every((hit, at) => hit === hits[at]);
    const drawn = isSame ? this.#drawn.length : 0;
    if (!isSame) fill(this.#hits);
    this.#hits.append(...hits.slice(drawn).map(hitRow));
    this.#drawn = hits;
    this.#hits.hidden = hits.length === 0;
    this.#more.hidden = next === null;
    if (hadFocus && drawn < hits.length) this.#links()[drawn]?.focus();
    const found = `${plural(hits.length, 'message')}${next === null ? '' : ', and more'}`;
    this.#count.textContent = hits.length > 0 ? found : isAsking && !isAnswered ? 'Searching…' : '';
    fill(this.#notes, error !== null && this.#problem(error), error === null && !isComplete && behind(), error === null && isAnswered && hits.length === 0 && this.#nothing());
  }

  /** @param {unknown} error */
  #problem(error) {
    const { query } = this.#finds;
    const { status, position } = error instanceof api.ApiError ? error : { status: 0, position: null };
    const isFinal = status >= 400 && status < 500;
    const again = h('button', { class: 'button small', type: 'button', onclick: () => this.#finds.ask() }, 'Try again');
    return h('div', { class: 'note bad search-problem', role: 'alert' }, icon('warning'),
      h('div', {}, h('p', {}, api.sentence(error)), position !== null && marked(query, position)), !isFinal && again);
  }

  #nothing() {
    return h('div', { class: 'empty' }, icon('search'), h('h2', {}, 'Nothing found'),
      h('p', {}, this.#finds.mailbox === null ? 'No message fits. Fewer words find more, and so does the beginning of one with a * behind it.' : 'No message in this mailbox fits.'));
  }
}

function behind() {
  return h('p', { class: 'note warn' }, icon('warning'), 'The index is still taking in mail, so something may be missing. It is asked again by itself.');
}

/**
 * The question with the place at which it was not understood.
 * @param {string} query
 * @param {number} position
 */
function marked(query, position) {
  const characters = [...query];
  const text = (/** @type {number} */ from, /** @type {number | undefined} */ to = undefined) => visible(characters.slice(from, to).join(''));
  return h('p', { class: 'search-place mono' }, text(0, position), h('mark', {}, text(position, position + 1) || '\u00a0'), text(position + 1));
}

customElements.define('search-page', SearchPage);
