// <get-started>: the operator's greeting, how to send messages to this server, and buttons that compose and import messages.

import { fill, h } from '../lib/dom.js';
import { showGreeting } from '../lib/greeting.js';
import { RECIPIENT } from '../lib/snippets.js';
import { composeButton } from './compose-dialog.js';
import { importButton } from './import-files.js';
import './send-here.js';

/** The maximum time that the rest waits for the greeting above it. */
const MAX_WAIT_MS = 1_000;

export class GetStarted extends HTMLElement {
  async connectedCallback() {
    const greeting = h('section', { class: 'greeting', 'aria-label': 'Greeting', hidden: true });
    fill(this, greeting);
    await Promise.race([showGreeting(greeting), new Promise((done) => setTimeout(done, MAX_WAIT_MS))]);
    if (!this.isConnected) return;
    const sendHere = document.createElement('send-here');
    const buttons = h('div', { class: 'row' }, composeButton(RECIPIENT), importButton());
    // A late greeting is shown below, so that nothing moves.
    if (greeting.hidden) greeting.before(sendHere, buttons);
    else greeting.after(sendHere, buttons);
  }
}

customElements.define('get-started', GetStarted);
