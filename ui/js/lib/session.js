// Who is logged in, where one has to be: the way to the page that asks, and the way out.

import { below, login } from './paths.js';

let isLeaving = false;

/** Goes to the page that asks who one is, which leads back to this one. */
export function ask() {
  // Several requests may be refused at once.
  if (isLeaving) return;
  isLeaving = true;
  location.assign(login(location));
}

/** Ends the login, and goes to the page that asks. */
export async function end() {
  // Whatever becomes of it, that page says what there is to say.
  await fetch(below('logout'), { method: 'POST', redirect: 'manual' }).catch(() => null);
  location.assign(below('login'));
}
