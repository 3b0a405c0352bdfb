// The identity that is signed in, which all tabs of this browser share. The session is a cookie that
// no script can read. So the page asks the server, and tabs tell each other when it may have changed.
import { endSession, getCaller, startSession, type Caller } from "./api";

const tabs = new BroadcastChannel("npuc-session");
let now: Caller | undefined;

/** Who this is, as last asked; undefined: not known. */
export const caller = () => now;

/** Whether the server would let this one do it. True where it is not known: the server decides. */
export const may = (...rights: string[]) => !now || rights.some((right) => now!.rights?.includes(right));

export async function askCaller(): Promise<Caller | undefined> {
  now = undefined;
  try { now = await getCaller(); } catch { /* the page itself says what is wrong */ }
  return now;
}

/** By a token, or else by the certificate that the browser has shown. */
export async function signIn(token = "") {
  await startSession(token);
  tabs.postMessage("changed");
}

export async function signOut() {
  await endSession();
  tabs.postMessage("changed");
}

/** Another tab has signed in or out. */
export const onChange = (act: () => void) => { tabs.onmessage = act; };
