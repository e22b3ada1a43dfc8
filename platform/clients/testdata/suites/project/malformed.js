function main ( { nonsense
