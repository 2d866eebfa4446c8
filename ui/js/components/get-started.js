// <get-started>: the operator's greeting, how to send messages to this server, and a form that sends a test message.

import * as api from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { showGreeting } from '../lib/greeting.js';
import { mailboxOf } from '../lib/snippets.js';
import { testMail } from './test-mail.js';
import './send-here.js';

/** The maximum time that the rest waits for the greeting above it. */
const MAX_WAIT_MS = 1_000;

export class GetStarted extends HTMLElement {
  async connectedCallback() {
    const greeting = h('section', { class: 'greeting', 'aria-label': 'Greeting', hidden: true });
    fill(this, greeting);
    const server = api.about().catch(() => null);
    const loaded = Promise.all([showGreeting(greeting), server]);
    await Promise.race([loaded, new Promise((done) => setTimeout(done, MAX_WAIT_MS))]);
    if (!this.isConnected) return;
    const sendHere = document.createElement('send-here');
    const form = h('div', { class: 'get-started-test' });
    // A late greeting is shown below, so that nothing moves.
    if (greeting.hidden) greeting.before(sendHere, form);
    else greeting.after(sendHere, form);
    const naming = (await server)?.['mailbox-naming'];
    fill(form, testMail(mailboxOf(naming ?? 'local'), { isShown: false }));
  }
}

customElements.define('get-started', GetStarted);
