// Schemas that the official conformance suite compares word by word.

const text = (more) => ({ type: "string", ...more });

// A form with a default of each primitive type (SEP-1034).
export const DEFAULTS = {
  type: "object",
  properties: {
    name: text({ default: "John Doe" }),
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: text({ enum: ["active", "inactive", "pending"], default: "active" }),
    verified: { type: "boolean", default: true },
  },
};

const words = ["red", "green", "blue"];
const titled = words.map((word) => ({ const: word, title: word.toUpperCase() }));

// A form with each way to offer a choice (SEP-1330).
export const CHOICES = {
  type: "object",
  properties: {
    untitledSingle: text({ enum: words }),
    titledSingle: text({ oneOf: titled }),
    legacyEnum: text({ enum: words, enumNames: words.map((word) => word.toUpperCase()) }),
    untitledMulti: { type: "array", items: text({ enum: words }) },
    titledMulti: { type: "array", items: { anyOf: titled } },
  },
};

// Keywords of JSON Schema 2020-12 that must come through unchanged (SEP-1613, SEP-2106).
export const ADDRESSED = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: { $anchor: "addressDef", type: "object", properties: { street: text(), city: text() } },
  },
  properties: {
    name: text(),
    address: { $ref: "#/$defs/address" },
    contactMethod: text({ enum: ["phone", "email"] }),
    phone: text(),
    email: text(),
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};
