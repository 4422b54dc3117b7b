// The theme searches in a Worker, and browsers start none for pages that are read from a folder.
// There, a hidden frame does the same work. The word "iframe-worker" in this file's name tells the
// theme's `offline` plugin not to fetch such a script from a server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      this.ready = new Promise((done) => {
        script.onload = done;
      });
      this.inside.document.documentElement.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
