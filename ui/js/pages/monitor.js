// The page monitor.

/** @import { Route } from '../types.js' */

import { fill, h } from '../lib/dom.js';
import { title } from '../lib/title.js';

export class MonitorPage extends HTMLElement {
  /** @type {Route} */
  route = { page: 'missing' };

  connectedCallback() {
    title('Monitor');
    fill(this, h('div', { class: 'page' }, h('h1', {}, 'Monitor')));
  }
}

customElements.define('monitor-page', MonitorPage);
