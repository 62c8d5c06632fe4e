// As much of a document as Plot and the figures need to make SVG where there is no browser.
"use strict";
(() => {
  const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
  class Text {
    constructor(data) { this.data = String(data); }
    get textContent() { return this.data; }
    get outerHTML() { return escaped(this.data); }
    cloneNode() { return new Text(this.data); }
  }
  class Element {
    constructor(name, namespace) {
      Object.assign(this, { tagName: name, namespaceURI: namespace, attributes: new Map(), childNodes: [], parentNode: null, ownerDocument: globalThis.document });
      this.style = { setProperty: (key, value) => this.setAttribute("style", `${this.getAttribute("style") ?? ""}${key}: ${value};`) };
    }
    getAttribute(key) { return this.attributes.get(key) ?? null; }
    setAttribute(key, value) { this.attributes.set(key, String(value)); }
    setAttributeNS(_, key, value) { this.setAttribute(key, value); }
    hasAttribute(key) { return this.attributes.has(key); }
    removeAttribute(key) { this.attributes.delete(key); }
    removeAttributeNS(_, key) { this.attributes.delete(key); }
    get children() { return this.childNodes.filter((child) => child instanceof Element); }
    get firstChild() { return this.childNodes[0] ?? null; }
    get nextSibling() {
      const siblings = this.parentNode?.childNodes ?? [];
      return siblings[siblings.indexOf(this) + 1] ?? null;
    }
    remove() { this.parentNode?.removeChild(this); }
    removeChild(child) {
      this.childNodes.splice(this.childNodes.indexOf(child), 1);
      child.parentNode = null;
      return child;
    }
    insertBefore(child, before) {
      child.parentNode?.removeChild(child);
      child.parentNode = this;
      this.childNodes.splice(before ? this.childNodes.indexOf(before) : this.childNodes.length, 0, child);
      return child;
    }
    appendChild(child) { return this.insertBefore(child, null); }
    append(...children) { for (const child of children) this.appendChild(typeof child === "object" ? child : new Text(child)); }
    prepend(...children) { for (const child of children.reverse()) this.insertBefore(typeof child === "object" ? child : new Text(child), this.firstChild); }
    replaceWith(...others) {
      for (const other of others) this.parentNode.insertBefore(other, this);
      this.remove();
    }
    replaceChildren(...children) {
      this.childNodes = [];
      this.append(...children);
    }
    get textContent() { return this.childNodes.map((child) => child.textContent).join(""); }
    set textContent(text) { this.replaceChildren(new Text(text)); }
    cloneNode(deep) {
      const copy = new Element(this.tagName, this.namespaceURI);
      copy.attributes = new Map(this.attributes);
      if (deep) copy.append(...this.childNodes.map((child) => child.cloneNode(true)));
      return copy;
    }
    querySelector() { return null; }
    querySelectorAll() { return []; }
    addEventListener() {}
    removeEventListener() {}
    dispatchEvent() {}
    get outerHTML() {
      const attributes = [...this.attributes].map(([key, value]) => ` ${key}="${escaped(value)}"`).join("");
      return `<${this.tagName}${attributes}>${this.childNodes.map((child) => child.outerHTML).join("")}</${this.tagName}>`;
    }
  }
  const document = globalThis.document = {
    createElement: (name) => new Element(name, "http://www.w3.org/1999/xhtml"),
    createElementNS: (namespace, name) => new Element(name, namespace),
    createTextNode: (data) => new Text(data),
    createDocumentFragment: () => new Element("fragment", ""),
  };
  document.documentElement = document.createElement("html");
  document.body = document.createElement("body");
  globalThis.window = globalThis;
  globalThis.performance ??= { now: () => 0 };
  // Figures use formats of their own: these only have to exist.
  globalThis.Intl ??= {
    NumberFormat: class { format(value) { return String(value); } },
    DateTimeFormat: class { format(value) { return String(value); } },
  };
  // A figure as a file.
  globalThis.drawFile = (name, data, options) => {
    const svg = Figures.draw(name, data, options);
    if (svg === null) return null;
    svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    svg.setAttribute("xmlns:xlink", "http://www.w3.org/1999/xlink");
    // On white, whatever shows it.
    svg.setAttribute("style", `${svg.getAttribute("style") ?? ""};background:white;color:#1a1a1a;font-family:system-ui,sans-serif`);
    return svg.outerHTML;
  };
})();
