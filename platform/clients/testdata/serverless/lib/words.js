exports.greet = name => 'Hello, ' + (name || 'World')
