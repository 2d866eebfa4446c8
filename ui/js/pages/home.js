// The page home.

/** @import { Route } from '../types.js' */

import { fill, h } from '../lib/dom.js';
import { title } from '../lib/title.js';

export class HomePage extends HTMLElement {
  /** @type {Route} */
  route = { page: 'missing' };

  connectedCallback() {
    title('Home');
    fill(this, h('div', { class: 'page' }, h('h1', {}, 'Home')));
  }
}

customElements.define('home-page', HomePage);
