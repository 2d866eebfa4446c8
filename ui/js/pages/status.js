// The page status.

/** @import { Route } from '../types.js' */

import { fill, h } from '../lib/dom.js';
import { title } from '../lib/title.js';

export class StatusPage extends HTMLElement {
  /** @type {Route} */
  route = { page: 'missing' };

  connectedCallback() {
    title('Status');
    fill(this, h('div', { class: 'page' }, h('h1', {}, 'Status')));
  }
}

customElements.define('status-page', StatusPage);
