import StemmaReplication

