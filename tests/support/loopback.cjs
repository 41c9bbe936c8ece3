// Loaded before a server of tests that has no setting for its address: it listens on the loopback address alone.
const net = require("node:net");

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  return typeof port === "number"
    ? listen.call(this, port, "127.0.0.1", ...rest.filter((each) => typeof each === "function"))
    : listen.call(this, port, ...rest);
};
