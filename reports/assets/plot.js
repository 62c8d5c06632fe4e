// What the figures of a report use of Observable Plot. scripts/vendor-charts makes plot.bundle.js of it.
export {
  plot, areaY, barX, barY, dot, frame, image, lineY, link, pointerX, rectY, ruleX, ruleY, stackY, text, tickY, tip,
} from "@observablehq/plot";
