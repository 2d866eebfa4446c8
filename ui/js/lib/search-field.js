// The search field in the bar. It searches the mailbox that is shown, or all mailboxes on other pages. While the user types, it
// dispatches the bubbling event `search-input` with `{ query, mailbox }`; Enter opens the search results.

/** @import { Route } from '../types.js' */

import * as keys from './keys.js';
import * as paths from './paths.js';
import { fill, find, set } from './dom.js';
import { icon } from './icons.js';
import { go } from './router.js';
import { visible } from './visible.js';

/** The delay between typing and the event, in milliseconds. */
const TYPING_DELAY_MS = 150;

/**
 * Sets up the field. Returns a function to call for each page that is shown.
 * @returns {(route: Route) => void}
 */
export function setUpSearchField() {
  const field = new SearchField();
  keys.add([{ keys: ['s', '/'], group: 'Everywhere', label: 'Search messages', run: () => field.focus(), when: () => field.isAvailable() }]);
  return (route) => field.follow(route);
}

class SearchField {
  #bar = find(document, '.bar', HTMLElement);
  #form = find(document, '.search-form', HTMLFormElement);
  #input = find(this.#form, 'input', HTMLInputElement);
  #scope = find(this.#form, '.search-scope', HTMLElement);
  #remove = find(this.#scope, 'button', HTMLButtonElement);
  /** Shows the field on narrow screens. */
  #button = find(document, '[data-tool=search]', HTMLButtonElement);
  /** The mailbox that is searched, or null for all. @type {string | null} */
  #mailbox = null;
  /** Whether the page shows search results. */
  #hasResults = false;
  /** @type {number | undefined} */
  #timer;

  constructor() {
    find(this.#form, '.search-box', HTMLElement).prepend(icon('search'));
    fill(this.#button, icon('search'));
    fill(this.#remove, icon('close'));
    this.#button.addEventListener('click', () => (this.#button.ariaExpanded === 'true' ? this.#expand(false) : this.focus()));
    this.#remove.addEventListener('click', () => this.#searchAll());
    this.#input.addEventListener('input', () => this.#typed());
    this.#input.addEventListener('keydown', (event) => this.#pressed(event));
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#input.blur();
      go(paths.list({ query: this.#query, mailbox: this.#mailbox }));
    });
  }

  /**
   * Shows the query and the mailbox of a page.
   * @param {Route} route
   */
  follow(route) {
    const { query, mailbox } = scopeOf(route);
    this.#hasResults = query !== '';
    this.#setMailbox(mailbox);
    const isFocused = document.activeElement === this.#input;
    // While the user types, the page can follow with a query that is a moment old.
    if (this.#timer !== undefined && isFocused) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#query !== query) this.#input.value = query;
    if (!isFocused) this.#expand(this.#hasResults);
  }

  focus() {
    this.#expand(true);
    this.#input.focus();
  }

  /** If the monitor is disabled, only a mailbox can be searched. */
  isAvailable() {
    return this.#mailbox !== null || !document.documentElement.hasAttribute('data-monitor-hidden');
  }

  get #query() {
    return this.#input.value.trim();
  }

  #typed() {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.#timer = undefined;
      this.#input.dispatchEvent(new CustomEvent('search-input', { bubbles: true, detail: { query: this.#query, mailbox: this.#mailbox } }));
    }, TYPING_DELAY_MS);
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const { key, isComposing, repeat } = event;
    if (isComposing) return;
    // A key that is held down deletes the text only.
    if (key === 'Backspace' && !repeat && this.#input.value === '' && this.#mailbox !== null) this.#searchAll();
    if (key !== 'Escape') return;
    event.preventDefault();
    if (this.#input.value === '') {
      this.#input.blur();
      this.#expand(this.#hasResults);
    } else {
      this.#input.value = '';
      this.#typed();
    }
  }

  /** Removes the mailbox from the search. */
  #searchAll() {
    if (document.documentElement.hasAttribute('data-monitor-hidden')) return;
    this.#setMailbox(null);
    this.#input.focus();
    if (this.#hasResults) go(paths.search({ query: this.#query }));
    else if (this.#query !== '') this.#typed();
  }

  /** @param {string | null} mailbox */
  #setMailbox(mailbox) {
    this.#mailbox = mailbox;
    const name = visible(mailbox ?? '');
    const label = mailbox === null ? 'Search all messages' : `Search in ${name}`;
    this.#input.placeholder = mailbox === null ? `${label}…` : 'Search…';
    this.#input.ariaLabel = label;
    this.#scope.hidden = mailbox === null;
    this.#scope.title = label;
    find(this.#scope, '.truncate', HTMLElement).textContent = `in ${name}`;
    this.#form.toggleAttribute('data-scoped', mailbox !== null);
  }

  /**
   * Shows or hides the field on narrow screens, where it has a line of its own.
   * @param {boolean} isExpanded
   */
  #expand(isExpanded) {
    this.#bar.toggleAttribute('data-search-open', isExpanded);
    set(this.#button, { 'aria-expanded': String(isExpanded) });
  }
}

/**
 * Returns the query and the mailbox of a page.
 * @param {Route} route
 */
function scopeOf(route) {
  return route.page === 'mail' ? route.scope : { query: '', mailbox: null };
}
