// <list-filters>: the filters of a list. A filter is a term of the query; the event `filter` { query } requests another query.

/** @import { Scope } from '../lib/scope.js' */

import { fill, h, set } from '../lib/dom.js';
import { FILTERS, hasTerm, tagsOf, tagTerm, toggleTerm } from '../lib/filters.js';
import { icon } from '../lib/icons.js';
import { colorTag } from '../lib/tags.js';
import { visible } from '../lib/visible.js';

export class ListFilters extends HTMLElement {
  #query = '';
  #buttons = FILTERS.map(({ term, label }) => h('button', { class: 'button small', type: 'button', onclick: () => this.#toggle(term) }, label));
  /** The tags of the query, which can be removed. */
  #tags = h('span', { class: 'filter-tags' });

  connectedCallback() {
    if (this.firstChild) return;
    set(this, { role: 'group', 'aria-label': 'Filters' });
    fill(this, this.#buttons, this.#tags);
  }

  /** @param {Scope} scope */
  show({ query }) {
    this.#query = query;
    FILTERS.forEach(({ term }, index) => this.#buttons[index].setAttribute('aria-pressed', String(hasTerm(query, term))));
    const tags = tagsOf(query);
    if (this.#tags.dataset.tags === tags.join('\n')) return;
    this.#tags.dataset.tags = tags.join('\n');
    fill(this.#tags, tags.map((tag) => colorTag(h('button', { class: 'button small tag', type: 'button', title: 'Remove this tag from the search', 'aria-label': `Tag ${visible(tag)}, remove`, onclick: () => this.#toggle(tagTerm(tag)) },
      h('bdi', { class: 'truncate' }, visible(tag)), icon('close')), tag)));
  }

  /** @param {string} term */
  #toggle(term) {
    this.dispatchEvent(new CustomEvent('filter', { bubbles: true, detail: { query: toggleTerm(this.#query, term) } }));
  }
}

customElements.define('list-filters', ListFilters);
