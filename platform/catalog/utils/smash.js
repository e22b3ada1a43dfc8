// Puts all fields under one, whose name is in $fieldName.
function main ({ $fieldName, ...rest }) {
  if (typeof $fieldName !== 'string') return { error: "Expected an argument '$fieldName' of type 'string'." }
  return { [$fieldName]: rest }
}
