// Desktop notices of new mail, for readers who asked for them.

/** @import { Summary } from '../types.js' */

import * as paths from './paths.js';
import * as prefs from './prefs.js';
import { address } from './format.js';
import { go } from './router.js';
import { toast } from './talk.js';
import { visible } from './visible.js';

/** How long there is silence after a notice: a flood of mail shall not become a flood of notices. */
const QUIET = 2_000;
let last = -QUIET;

/** Whether new mail is to be told on the desktop. */
export const areOn = () => prefs.read('notices', false) && globalThis.Notification?.permission === 'granted';

/** Switches them on or off; the browser asks the reader. Returns whether they are on. */
export async function toggle() {
  if (areOn()) {
    prefs.write('notices', false);
    return false;
  }
  if (!globalThis.Notification) {
    toast('This browser shows desktop notices on secure pages only: open Restante by HTTPS or on localhost.', { bad: true });
    return false;
  }
  const allowed = (await Notification.requestPermission()) === 'granted';
  prefs.write('notices', allowed);
  if (!allowed) toast('The browser does not allow desktop notices for this page; its settings can change that.', { bad: true });
  return allowed;
}

/**
 * Tells of a message, unless the reader looks at the page anyway.
 * @param {Summary} message
 */
export function tell(message) {
  if (!areOn() || (document.visibilityState === 'visible' && document.hasFocus())) return;
  if (performance.now() - last < QUIET) return;
  last = performance.now();
  try {
    const notice = new Notification(visible(address(message.from).name), { body: visible(message.subject), tag: `${message.mailbox}/${message.id}` });
    notice.onclick = () => {
      window.focus();
      go(paths.mailbox(message.mailbox, message.id));
      notice.close();
    };
  } catch {
    // Some browsers know the name only.
  }
}
