// <list-filters>: the filters of a list. A filter is a term of the query; the event `filter` { query } requests another query.

/** @import { Scope } from '../lib/scope.js' */

import { fill, h, set } from '../lib/dom.js';
import { FILTERS, hasTerm, tagTerm, toggleTerm } from '../lib/filters.js';
import { visible } from '../lib/visible.js';

/** The maximum number of tags to choose from. */
const MAX_TAGS = 100;

export class ListFilters extends HTMLElement {
  #query = '';
  /** The tags that were offered last. @type {string[]} */
  #known = [];
  /** The tags in the menu, and the chosen one. */
  #drawnTags = '';
  #buttons = FILTERS.map(({ term, label }) => h('button', { class: 'button small', type: 'button', onclick: () => this.#request(toggleTerm(this.#query, term)) }, label));
  #tags = h('select', { class: 'field small', 'aria-label': 'Tag', hidden: true, onchange: () => this.#chooseTag() });

  connectedCallback() {
    if (this.firstChild) return;
    set(this, { role: 'group', 'aria-label': 'Filters' });
    fill(this, this.#buttons, this.#tags);
  }

  /**
   * @param {Scope} scope
   * @param {Set<string>} tags The tags of the listed messages. A tag in the query is always offered.
   */
  show({ query }, tags) {
    this.#query = query;
    FILTERS.forEach(({ term }, index) => this.#buttons[index].setAttribute('aria-pressed', String(hasTerm(query, term))));
    const chosen = chosenTag(query, [...tags, ...this.#known]);
    const offered = [...new Set([...tags, ...(chosen === undefined ? [] : [chosen])])].sort().slice(0, MAX_TAGS);
    this.#known = offered;
    const key = JSON.stringify([offered, chosen]);
    if (key === this.#drawnTags) return;
    this.#drawnTags = key;
    fill(this.#tags, h('option', { value: '' }, 'Any tag'), offered.map((tag) => h('option', { value: tag, selected: tag === chosen }, visible(tag))));
    this.#tags.hidden = offered.length === 0;
  }

  #chooseTag() {
    const before = chosenTag(this.#query, this.#known);
    const without = before === undefined ? this.#query : toggleTerm(this.#query, tagTerm(before));
    this.#request(this.#tags.value === '' ? without : toggleTerm(without, tagTerm(this.#tags.value)));
  }

  /** @param {string} query */
  #request(query) {
    this.dispatchEvent(new CustomEvent('filter', { bubbles: true, detail: { query } }));
  }
}

/**
 * Returns the first of these tags that is a term of the query.
 * @param {string} query
 * @param {string[]} tags
 */
function chosenTag(query, tags) {
  return tags.find((tag) => hasTerm(query, tagTerm(tag)));
}

customElements.define('list-filters', ListFilters);
