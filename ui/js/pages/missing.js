// The page for unknown addresses.

import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { title } from '../lib/title.js';
import { visible } from '../lib/visible.js';

export class MissingPage extends HTMLElement {
  connectedCallback() {
    title('Page not found');
    fill(this, h('div', { class: 'empty' }, icon('envelope'),
      h('h1', {}, 'Page not found'),
      h('p', {}, 'There is no page at ', h('code', {}, visible(location.pathname)), '.'),
      h('p', { class: 'row' }, h('a', { class: 'button main', href: paths.inbox() }, 'Inbox'), h('a', { class: 'button', href: paths.status() }, 'Status'), h('a', { class: 'button', href: paths.api() }, 'API docs'))));
  }
}

customElements.define('missing-page', MissingPage);
