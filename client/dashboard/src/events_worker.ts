// Runs in a SharedWorker: the one event stream of all tabs of this browser.
import { JobStreams } from "./job_streams";
import type { FromTab, ToTab } from "./watch";

const streams = new JobStreams();
new BroadcastChannel("npuc-session").onmessage = () => streams.restart();

function serve(port: MessagePort) {
  const stops = new Map<number, () => void>();
  const send = (message: ToTab) => port.postMessage(message);
  const stop = (number: number) => { stops.get(number)?.(); stops.delete(number); };
  port.onmessage = ({ data }: MessageEvent<FromTab>) => {
    if ("lock" in data) {
      // The tab holds it as long as it lives.
      void navigator.locks.request(data.lock, () => { for (const number of stops.keys()) stop(number); });
    } else if ("stop" in data) stop(data.stop);
    else {
      const { number, jobId } = data;
      stops.set(number, streams.watch(jobId, {
        event: (event) => send({ number, event }),
        end: (error) => {
          stops.delete(number);
          send({ number, ended: true, error: error && { status: error.status, code: error.code, message: error.message, details: error.details } });
        },
        connected: (up) => send({ number, up }),
      }));
    }
  };
}

(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => serve(event.ports[0]!);
