// The page `/`: open a mailbox, see which ones there are, and learn how to send mail here.

/** @import { Route } from '../types.js' */

import * as api from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { greet } from '../lib/greeting.js';
import { title } from '../lib/title.js';
import '../components/mailbox-list.js';
import '../components/open-mailbox.js';
import '../components/send-here.js';

/** How long the rest of the page waits for what stands above it, so that it need not move. */
const PATIENCE = 250;

export class HomePage extends HTMLElement {
  /** @type {Route} */
  route = { page: 'home' };

  async connectedCallback() {
    title('');
    const greeting = h('section', { class: 'greeting', 'aria-label': 'Greeting', hidden: true });
    const rest = h('div', { class: 'home-rest' });
    fill(this, h('div', { class: 'page home' }, document.createElement('open-mailbox'), greeting, rest));
    const greeted = greet(greeting);
    await Promise.race([Promise.all([greeted, api.about().catch(() => null)]), new Promise((done) => setTimeout(done, PATIENCE))]);
    if (!this.isConnected) return;
    fill(rest, document.createElement('mailbox-list'), document.createElement('send-here'));
  }
}

customElements.define('home-page', HomePage);
