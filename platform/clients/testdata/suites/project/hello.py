def main(args):
    return {"greeting": "hello, " + args.get("name", "you")}
