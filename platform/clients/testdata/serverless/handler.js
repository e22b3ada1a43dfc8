'use strict'
const words = require('./lib/words')

exports.hello = ({ name }) => {
  console.log('asked for ' + name)
  return { payload: words.greet(name) }
}

exports.page = ({ name }) => ({ body: `<b>${words.greet(name)}</b>` })
