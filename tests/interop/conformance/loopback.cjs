// The suite's mock servers call listen(0) without a host, which binds every interface. An unspecified
// address becomes 127.0.0.1 here, in the synchronous hook: a host given to listen() would be resolved
// asynchronously, and some scenarios read address() at once.
const net = require("node:net");
const original = net.Server.prototype._listen2;
if (typeof original !== "function") throw new Error("net.Server._listen2 is missing in node " + process.version);
net.Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  const tcp = typeof port === "number" && port >= 0 && (addressType === 4 || addressType === 6);
  const any = !address || address === "::" || address === "0.0.0.0";
  if (tcp && any) [address, addressType] = ["127.0.0.1", 4];
  return original.call(this, address, port, addressType, ...rest);
};
